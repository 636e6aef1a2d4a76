class RayError(Exception):
    pass


class RayActorError(RayError):
    pass


class ActorUnavailableError(RayActorError):
    pass
