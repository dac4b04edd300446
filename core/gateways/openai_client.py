"""The one way to a server: the `openai` client, told to use only what it was given.

Requests and answers are plain JSON objects here. The servers that speak these protocols differ in
details that a typed reader would stumble over; what matters is picked out by the two gateways.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec

from ..errors import ThresherError
from ..models import stated_by_endpoint
from . import errors
from .base import EndpointLimits, ErrorKind, GatewayError

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai._types import RequestOptions


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A server: its base URL, the variable its key comes from (for messages only), and times.

    `timeout` is how many seconds it may stay silent, `connect_timeout` how many to connect.
    Raises ThresherError when the base URL cannot be one.
    """

    base_url: str
    key_variable: str = ""
    organization: str = ""
    project: str = ""
    timeout: float = 600.0
    connect_timeout: float = 10.0

    def __post_init__(self) -> None:
        check_base_url(self.base_url)

    @property
    def host(self) -> str:
        """The server's name and port."""
        return errors.host_of(self.base_url)

    @property
    def local(self) -> bool:
        """Whether the server is on this machine, where no key is needed and no proxy helps."""
        return is_local(self.base_url)


class Connection:
    """Sends to one endpoint. The `openai` library is loaded at the first request, in a thread.

    Its own retries are off: the loop and the compaction engine decide about those, and show them.
    Redirects are not followed, since they would carry a conversation to another server. Every
    failure is a GatewayError, and no text of one holds the key.
    """

    def __init__(self, endpoint: Endpoint, key: str = "") -> None:
        self.endpoint = endpoint
        self.place = errors.Place(endpoint.base_url, endpoint.key_variable, key)
        self._key = key
        self._client: AsyncOpenAI | None = None
        self._making = asyncio.Lock()

    async def send(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """One request, one JSON object."""
        client = await self._ready()
        try:
            answer = await client.post(path, cast_to=object, body=body, options=self._options())
        except Exception as error:
            raise self._told(error) from None
        return self._object(answer)

    async def events(self, path: str, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """One request, its answer as a stream of JSON objects.

        A server that ignores the wish to stream gives its whole answer as the only object.
        """
        from openai import AsyncStream

        client = await self._ready()
        try:
            stream = await client.post(
                path,
                cast_to=object,
                body=body,
                options=self._options(),
                stream=True,
                stream_cls=AsyncStream[object],
            )
        except Exception as error:
            raise self._told(error) from None
        try:
            kind = stream.response.headers.get("content-type", "").partition(";")[0].strip()
            if kind == "application/json":
                yield self._object(msgspec.json.decode(await stream.response.aread()))
                return
            if kind and kind != "text/event-stream":
                raise errors.malformed(self.place, f"{kind} instead of a stream of events")
            async for event in stream:
                if isinstance(event, dict):
                    yield event
        except GatewayError:
            raise
        except Exception as error:
            raise self._told(error) from None
        finally:
            await stream.close()

    async def limits(self, model: str) -> EndpointLimits | None:
        """What `GET /models` says of the model; None when it fails or says nothing."""
        source = f"{self.endpoint.host} GET /models"
        for path in (f"/models/{quote(model, safe='')}", "/models"):
            try:
                client = await self._ready()
                options = self._options(timeout=_LIMITS_TIMEOUT)
                answer = await client.get(path, cast_to=object, options=options)
            except Exception:
                # Whatever went wrong here, the request that follows will tell it.
                continue
            for entry in _entries(answer, model):
                stated = stated_by_endpoint(entry, source)
                if stated is not None:
                    return EndpointLimits(
                        stated.window, stated.max_output, stated.source, stated.max_input
                    )
        return None

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ready(self) -> AsyncOpenAI:
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(self._make)
            return self._client

    def _options(self, timeout: float | None = None) -> RequestOptions:
        from openai import Omit

        options: RequestOptions = {} if timeout is None else {"timeout": timeout}
        if not self._key:
            # The client accepts the want of a key only when each request says so.
            options["headers"] = {"Authorization": Omit()}
        return options

    def _make(self) -> AsyncOpenAI:
        import httpx2
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Omit

        timeout = httpx2.Timeout(self.endpoint.timeout, connect=self.endpoint.connect_timeout)
        # Naming the header keeps one from OPENAI_CUSTOM_HEADERS from taking its place. The empty
        # strings keep the library from reading keys and ids of its own choice.
        headers: dict[str, Any] = {
            "Authorization": f"Bearer {self._key or 'none'}",
            "OpenAI-Organization": self.endpoint.organization or Omit(),
            "OpenAI-Project": self.endpoint.project or Omit(),
        }
        return AsyncOpenAI(
            api_key=self._key or "none",
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            base_url=self.endpoint.base_url,
            timeout=timeout,
            max_retries=0,
            default_headers=headers,
            http_client=DefaultAsyncHttpxClient(
                follow_redirects=False, trust_env=not self.endpoint.local, timeout=timeout
            ),
        )

    def _object(self, answer: object) -> dict[str, Any]:
        if not isinstance(answer, dict):
            what = "text that is not JSON" if isinstance(answer, str) else "JSON of another form"
            raise errors.malformed(self.place, what)
        if answer.get("error") and not answer.get("output") and not answer.get("choices"):
            raise errors.to_error(errors.fault_of_body(answer), self.place)
        return answer

    def _told(self, error: Exception) -> GatewayError:
        """An exception of the client in our words."""
        import httpx2
        import openai

        match error:
            case openai.APITimeoutError() | httpx2.TimeoutException():
                return errors.timeout_error(self.place)
            case openai.APIStatusError():
                retry_after = errors.parse_retry_after(error.response.headers)
                fault = errors.fault_of_body(_body(error), error.status_code, retry_after)
                return errors.to_error(fault, self.place)
            case openai.APIConnectionError() | httpx2.RequestError() | OSError():
                return errors.network_error(self.place, _why(error))
            case openai.APIError():
                return errors.to_error(errors.fault_of_body(error.body), self.place)
            case UnicodeEncodeError():
                return GatewayError(
                    ErrorKind.REFUSED,
                    "The conversation holds half of a surrogate pair, which no request can carry: "
                    "compact it away or rewind to before it.",
                )
            case ValueError() | msgspec.DecodeError():
                return errors.malformed(self.place, "something that is not valid JSON")
            case _:
                return errors.malformed(
                    self.place, f"something unexpected ({type(error).__name__})"
                )


def check_base_url(base_url: str) -> None:
    """Raise ThresherError, saying what is wrong, unless this can be the base URL of an API."""
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise _bad_url(base_url, f"cannot be read ({error})") from None
    if parts.scheme not in ("http", "https") or not host:
        raise _bad_url(base_url, "must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise _bad_url(f"{parts.scheme}://...@{host}", "must not hold a name or password")
    if parts.query or parts.fragment or any(ch.isspace() for ch in base_url):
        raise _bad_url(base_url, "must not have a query, a fragment or blanks")
    for ending in ("/chat/completions", "/responses", "/completions"):
        if parts.path.rstrip("/").endswith(ending):
            raise _bad_url(base_url, f"must not end in {ending}: that part is added by itself")


def is_local(base_url: str) -> bool:
    """Whether the URL names this machine: localhost or a loopback address."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _bad_url(base_url: str, why: str) -> ThresherError:
    return ThresherError(
        "Base URL not usable",
        f"The base URL {base_url!r} {why}; give one like https://api.openai.com/v1.",
    )


def _body(error: Any) -> object:
    """The whole error body: the client keeps only the inner object of `{"error": ...}`."""
    try:
        return msgspec.json.decode(error.response.content)
    except Exception:
        return error.body


def _why(error: BaseException) -> str:
    cause = error.__cause__ or error.__context__ or error
    return str(cause) or type(cause).__name__


def _entries(answer: object, model: str) -> list[Mapping[str, Any]]:
    if not isinstance(answer, Mapping):
        return []
    listed = answer.get("data")
    if isinstance(listed, list):
        return [e for e in listed if isinstance(e, Mapping) and e.get("id") == model]
    return [answer]


_LIMITS_TIMEOUT = 8.0
