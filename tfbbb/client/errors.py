"""Errors of the client."""


class ClientError(Exception):
    """A request failed; the message is one sentence."""


class UnreachableError(ClientError):
    """No response: there is no service at this address, or the network failed."""


class ServiceError(ClientError):
    """The service responded with an error.

    Attributes:
        status: HTTP status of the response, e.g. 404.
        message: The service's own error message.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class JobFailedError(ClientError):
    """`Job.wait` waited for a job that failed or was cancelled."""
