"""What goes wrong between a program and the service."""


class ClientError(Exception):
    """The service could not be asked, or did not do it; the message is a sentence."""


class UnreachableError(ClientError):
    """No answer came: there is no service at this address, or the network failed."""


class ServiceError(ClientError):
    """The service refused.

    Attributes:
        status: Status of the answer, 404 say.
        message: Why, in the service's words.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class JobFailedError(ClientError):
    """A job that was waited for has failed, or was cancelled."""
