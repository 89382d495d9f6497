# SPDX-License-Identifier: Apache-2.0
"""
Signature version 4, computed by AWS's own signer (Debian's python3-botocore) from the request as it
was received: nothing here is shared with the implementation under test.
"""

import hashlib
import re
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qsl, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials

from .errors import ServiceError
from .web import Request

SERVICE = "bedrock-agentcore"
TOLERANCE = timedelta(minutes=5)
STAMP = "%Y%m%dT%H%M%SZ"
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>\w{16,128})/(?P<date>\d{8})/(?P<region>[a-z0-9-]+)/"
    r"bedrock-agentcore/aws4_request, ?SignedHeaders=(?P<signed>[a-z0-9;-]+), ?"
    r"Signature=(?P<signature>[0-9a-f]{64})")
# Whoever may change these on the way may change what the request does.
MUST_BE_SIGNED = ("content-type", "host", "traceparent", "x-amz-content-sha256", "x-amz-date",
                  "x-amz-security-token", "x-amzn-code-interpreter-session-id")


class Verifier(SigV4Auth):
    """Signs exactly the headers that the client says it signed."""

    def __init__(self, secret: str, key: str, region: str, signed: list[str]) -> None:
        super().__init__(Credentials(key, secret), SERVICE, region)
        self.signed = signed

    def headers_to_sign(self, request: AWSRequest) -> HTTPHeaders:
        headers = HTTPHeaders()
        for name in self.signed:
            for value in request.headers.get_all(name, []):
                headers[name] = value
        return headers


def refuse(name: str, message: str) -> ServiceError:
    return ServiceError(name, message, 403)


def mismatch(why: str) -> ServiceError:
    # The service's own words stop after the second sentence; the reason helps who reads a test.
    return refuse("InvalidSignatureException",
                  "The request signature we calculated does not match the signature you provided. "
                  "Check your AWS Secret Access Key and signing method. Consult the service "
                  f"documentation for details. ({why})")


def find_secret(request: Request, key: str, credentials: list[dict], now: datetime) -> str:
    token = request.header("x-amz-security-token")
    for known in credentials:
        if known["key"] == key and known.get("token") == token:
            if known.get("expires") is not None and now.timestamp() >= known["expires"]:
                raise refuse("ExpiredTokenException",
                             "The security token included in the request is expired")
            return known["secret"]
    raise refuse("UnrecognizedClientException",
                 "The security token included in the request is invalid.")


def check_date(stamp: str, now: datetime, skew_error: str) -> None:
    try:
        signed_at = datetime.strptime(stamp, STAMP).replace(tzinfo=timezone.utc)
    except ValueError:
        raise mismatch("x-amz-date is no date") from None
    if signed_at < now - TOLERANCE:
        limit = (now - TOLERANCE).strftime(STAMP)
        raise refuse(skew_error, f"Signature expired: {stamp} is now earlier than {limit} "
                                 f"({now.strftime(STAMP)} - 5 min.)")
    if signed_at > now + TOLERANCE:
        limit = (now + TOLERANCE).strftime(STAMP)
        raise refuse(skew_error, f"Signature not yet current: {stamp} is still later than {limit} "
                                 f"({now.strftime(STAMP)} + 5 min.)")


def expected(request: Request, secret: str, parts: dict, stamp: str) -> str:
    """What the signature must be."""
    split = urlsplit(request.target)
    signer = Verifier(secret, parts["key"], parts["region"], parts["signed"].split(";"))
    again = AWSRequest(method=request.method, url="http://any" + split.path, data=request.body,
                       params=parse_qsl(split.query, keep_blank_values=True))
    for name, value in request.headers:
        again.headers[name] = value
    again.context["timestamp"] = stamp
    return signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)


def verify(request: Request, credentials: list[dict], now: datetime,
           skew_error: str = "InvalidSignatureException") -> None:
    """Raise ServiceError unless the request is signed, by a known key, now."""
    authorization = request.header("authorization")
    if not authorization:
        raise refuse("MissingAuthenticationTokenException", "Missing Authentication Token")
    match = AUTHORIZATION.fullmatch(authorization)
    if not match:
        raise refuse("IncompleteSignatureException",
                     f"Authorization header is not as expected: {authorization}")
    parts = match.groupdict()
    signed = parts["signed"].split(";")
    present = {name.lower() for name, _ in request.headers}
    if signed != sorted(set(signed)) or not present.issuperset(signed):
        raise mismatch("SignedHeaders is not sorted, or names a header that was not sent")
    bare = [name for name in MUST_BE_SIGNED if name in present and name not in signed]
    if bare or not {"host", "x-amz-date"} <= set(signed):
        raise mismatch(f"not signed: {bare or 'host or x-amz-date'}")
    secret = find_secret(request, parts["key"], credentials, now)
    stamp = request.header("x-amz-date")
    if not stamp.startswith(parts["date"]):
        raise mismatch("the date of the credential is not that of x-amz-date")
    check_date(stamp, now, skew_error)
    hashed = request.header("x-amz-content-sha256")
    if hashed is not None and hashed != hashlib.sha256(request.body).hexdigest():
        raise mismatch("x-amz-content-sha256 is not the hash of the body")
    if expected(request, secret, parts, stamp) != parts["signature"]:
        raise mismatch("the signature differs")
