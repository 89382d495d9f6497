# SPDX-License-Identifier: Apache-2.0
"""What the service refuses with: the HTTP status, the name and the message of an error."""

STATUS = {
    "ValidationException": 400,
    "ServiceQuotaExceededException": 402,
    "AccessDeniedException": 403,
    "ResourceNotFoundException": 404,
    "ConflictException": 409,
    "ThrottlingException": 429,
    "InternalServerException": 500,
}


class ServiceError(Exception):
    def __init__(self, name: str, message: str, status: int | None = None, **members) -> None:
        super().__init__(message)
        self.name = name
        self.status = status or STATUS.get(name, 403)
        self.body = {"message": message, **members}


def invalid(field: str, problem: str) -> ServiceError:
    return ServiceError("ValidationException", f"{field}: {problem}",
                        reason="FieldValidationFailed",
                        fieldList=[{"name": field, "message": problem}])


def not_active(session: str) -> ServiceError:
    # The live service sends neither reason nor fieldList here.
    return ServiceError("ValidationException",
                        f"Code interpreter session {session} is not active")


def too_large() -> ServiceError:
    return ServiceError("ValidationException",
                        "Response payload too large. Reduce the number or size of files in a "
                        "single call.", reason=None, fieldList=None)
