class RayActorError(Exception):
    pass


class ActorUnavailableError(RayActorError):
    pass
