"""What GPUs cost."""

from __future__ import annotations

from aiperf.sdk.options import Finite, Options, option


class EnergyOptions(Options):
    gpu_cost_per_hour: Finite | None = option("--gpu-cost-per-hour", group="GPU telemetry", metavar="MONEY", gt=0,
        place="gpu_telemetry.cost_per_hour",
        help="Price of a GPU for an hour, in any currency; adds the cost of tokens and requests in that currency.")  # fmt: skip
    gpu_count: int | None = option("--gpu-count", group="GPU telemetry", metavar="INT", ge=1, shown="those that are sampled",
        place="gpu_telemetry.count", help="GPUs that the server uses, for its cost.")  # fmt: skip

    def problems(self, typed: dict[str, str]) -> list[str]:
        if self.gpu_count is not None and self.gpu_cost_per_hour is None:
            flag = typed.get("gpu_count", "--gpu-count")
            return [f"{flag} {self.gpu_count} counts GPUs for their cost, and there is no price\nadd --gpu-cost-per-hour MONEY"]
        return []
