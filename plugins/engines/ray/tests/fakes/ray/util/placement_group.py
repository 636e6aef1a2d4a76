import os


class PlacementGroup:
    def __init__(self, bundles: list[dict[str, float]]) -> None:
        self.bundles = bundles

    def wait(self, timeout_seconds: float) -> bool:
        return sum(bundle["CPU"] for bundle in self.bundles) <= float(os.environ.get("FAKE_RAY_FREE", "100"))


def placement_group(bundles: list[dict[str, float]], strategy: str) -> PlacementGroup:
    assert strategy == "SPREAD"
    return PlacementGroup(bundles)
