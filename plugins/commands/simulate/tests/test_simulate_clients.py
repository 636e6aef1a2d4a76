"""The official clients read what the simulator sends, streamed and whole; their types check each event."""

from __future__ import annotations

import base64
import io
import wave
from collections.abc import Iterator
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator, running

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")
from pydantic import TypeAdapter  # noqa: E402  # a requirement of both

CHAT: list[Any] = [{"role": "user", "content": "Hello there"}]
FUNCTION = {"name": "weather", "description": "d", "parameters": {"type": "object"}}
TOOL: dict[str, Any] = {"type": "function", "function": FUNCTION}
CALL = {"X-Simulate": "call,tokens=4,reasoning=1"}
REASON = {"X-Simulate": "tokens=5,reasoning=2,comments,lines=crlf"}


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with running(decode_ms=0, prefill_us_per_token=0, stop_tokens=3, film_ms=30) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def client(simulator: Simulator) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{simulator.url}/v1", api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def claude(simulator: Simulator) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=simulator.url, api_key="k", max_retries=0) as client:
        yield client


def checked(kind: Any, value: Any) -> Any:
    """The value, which its type takes: the clients themselves accept whatever comes."""
    return TypeAdapter(kind).validate_python(value.to_dict())


def clip(seconds: float) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, 8000, 0, "NONE", "not compressed"))
        out.writeframes(bytes(round(seconds * 16_000)))
    return file.getvalue()


def test_images_whole_and_streamed(client: Any) -> None:
    answer = client.images.generate(model="m", prompt="a kite", n=2, size="256x256")
    checked(openai.types.ImagesResponse, answer)
    assert all(base64.b64decode(image.b64_json).startswith(b"\x89PNG") for image in answer.data)
    streamed = [*client.images.generate(model="m", prompt="a kite", stream=True, partial_images=2)]
    types = [*[openai.types.ImageGenPartialImageEvent] * 2, openai.types.ImageGenCompletedEvent]
    assert [type(checked(kind, event)) for kind, event in zip(types, streamed, strict=True)] == types


def test_edits_whole_and_streamed(client: Any) -> None:
    picture = ("street.png", b"\x89PNG\r\n\x1a\n")
    checked(openai.types.ImagesResponse, client.images.edit(model="m", prompt="night", image=[picture, picture]))
    (event,) = client.images.edit(model="m", prompt="night", image=picture, stream=True)
    assert isinstance(checked(openai.types.ImageEditCompletedEvent, event), openai.types.ImageEditCompletedEvent)


def test_transcriptions_whole_and_streamed(client: Any) -> None:
    create = client.audio.transcriptions.create
    answer = create(model="m", file=("clip.wav", clip(2)))
    assert len(checked(openai.types.audio.Transcription, answer).text.split()) == 5
    whole = create(model="m", file=("clip.wav", clip(2)), response_format="verbose_json")
    assert checked(openai.types.audio.TranscriptionVerbose, whole).duration == 2
    assert "-->" in create(model="m", file=("clip.wav", clip(2)), response_format="srt")
    *deltas, done = create(model="m", file=("clip.wav", clip(2)), stream=True)
    said = "".join(checked(openai.types.audio.TranscriptionTextDeltaEvent, event).delta for event in deltas)
    assert checked(openai.types.audio.TranscriptionTextDoneEvent, done).text == said


def test_speech_as_bytes_and_in_pieces(client: Any) -> None:
    words: dict[str, Any] = {"model": "m", "voice": "alloy", "input": "x" * 72}
    assert client.audio.speech.create(**words, response_format="wav").read().startswith(b"RIFF")
    with client.audio.speech.with_streaming_response.create(**words, response_format="pcm") as answer:
        assert sum(map(len, answer.iter_bytes())) == 4.8 * 48_000


@pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")
def test_a_video_from_its_job_to_its_film(client: Any) -> None:
    video = client.videos.create_and_poll(model="m", prompt="a kite", seconds="4", size="1280x720", poll_interval_ms=10)
    assert checked(openai.types.Video, video).status == "completed"
    assert len(client.videos.download_content(video.id).read()) == 1_000_000


def test_a_whole_chat(client: Any) -> None:
    answer = client.chat.completions.create(model="m", messages=CHAT, max_tokens=5, n=2, extra_headers=REASON)
    checked(openai.types.chat.ChatCompletion, answer)
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.usage.completion_tokens == sum(
        len(f"{choice.message.reasoning_content}{choice.message.content or ''}".split()) for choice in answer.choices
    )


def test_a_streamed_chat_with_a_call(client: Any) -> None:
    with client.chat.completions.stream(model="m", messages=CHAT, tools=[TOOL], max_tokens=9, extra_headers=CALL) as stream:
        for event in stream:
            if event.type == "chunk":
                checked(openai.types.chat.ChatCompletionChunk, event.chunk)
        (choice,) = stream.get_final_completion().choices
    (call,) = choice.message.tool_calls
    assert (choice.finish_reason, call.function.name) == ("tool_calls", "weather")
    assert call.function.arguments.startswith('{"text":" ')


def test_completions(client: Any) -> None:
    whole = client.completions.create(model="m", prompt=["a", "b"], max_tokens=4)
    checked(openai.types.Completion, whole)
    chunks = [*client.completions.create(model="m", prompt="a", max_tokens=4, stream=True)]
    checked(openai.types.Completion, chunks[-1])  # the type allows no null as finish_reason, which every server sends before
    assert [choice.finish_reason for chunk in chunks[:-1] for choice in chunk.choices] == [None] * (len(chunks) - 1)


def test_a_whole_response_and_the_next_turn(client: Any) -> None:
    first = client.responses.create(model="m", input="Hello there, how are you?", store=True, instructions="Be terse.")
    checked(openai.types.responses.Response, first)
    second = client.responses.create(model="m", input="And?", store=True, previous_response_id=first.id)
    assert (first.status, second.status) == ("completed", "completed")
    assert second.usage.input_tokens > first.usage.input_tokens
    assert len(first.output_text.split()) == first.usage.output_tokens
    with pytest.raises(openai.BadRequestError, match="'resp_x' not found"):
        client.responses.create(model="m", input="And?", previous_response_id="resp_x")


@pytest.mark.parametrize(("headers", "kinds"), [(REASON, ["reasoning", "message"]), (CALL, ["reasoning", "function_call"])])
def test_a_streamed_response(client: Any, headers: dict[str, str], kinds: list[str]) -> None:
    tool: Any = {"type": "function", **FUNCTION, "strict": False}
    with client.responses.stream(model="m", input="Hi", tools=[tool], extra_headers=headers, max_output_tokens=99) as stream:
        for event in stream:
            assert event.sequence_number >= 0
        answer = stream.get_final_response()
    assert [item.type for item in answer.output] == kinds
    assert answer.usage.output_tokens_details.reasoning_tokens > 0
    raw = client.responses.create(model="m", input="Hi", tools=[tool], extra_headers=headers, stream=True)
    assert [checked(openai.types.responses.ResponseStreamEvent, event) for event in raw]


def test_a_response_that_is_cut_says_so(client: Any) -> None:
    headers = {"X-Simulate": "tokens=2"}
    events = [*client.responses.create(model="m", input="Hi", max_output_tokens=2, stream=True, extra_headers=headers)]
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.incomplete_details.reason == "max_output_tokens"


def test_a_whole_message(claude: Any) -> None:
    answer = claude.messages.create(model="m", messages=CHAT, max_tokens=99, system="Be terse.", extra_headers=REASON)
    checked(anthropic.types.Message, answer)
    assert answer.content[0].type == "thinking"
    assert answer.usage.input_tokens + answer.usage.cache_read_input_tokens > 5


def test_a_streamed_message_with_a_call(claude: Any) -> None:
    tool: Any = {"name": "weather", "input_schema": {"type": "object"}}
    with claude.messages.stream(model="m", messages=CHAT, max_tokens=99, tools=[tool], extra_headers=CALL) as stream:
        events = [*stream]
        answer = stream.get_final_message()
    assert {"message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop"} <= {
        event.type for event in events
    }
    thought, call = answer.content
    assert (thought.type, thought.signature, answer.stop_reason) == ("thinking", "c2ln", "tool_use")
    assert call.name == "weather" and call.input["text"].startswith(" ")
    for event in claude.messages.create(model="m", messages=CHAT, max_tokens=9, stream=True):
        checked(anthropic.types.RawMessageStreamEvent, event)


def test_errors_have_the_form_of_their_api(client: Any, claude: Any) -> None:
    failing = {"X-Simulate": "fail=418"}
    with pytest.raises(openai.APIStatusError) as ours:
        client.chat.completions.create(model="m", messages=CHAT, extra_headers=failing)
    with pytest.raises(anthropic.APIStatusError) as theirs:
        claude.messages.create(model="m", messages=CHAT, max_tokens=1, extra_headers=failing)
    assert ours.value.body["type"] == theirs.value.body["error"]["type"] == "SimulatedError"
    with pytest.raises(anthropic.APIStatusError):
        list(claude.messages.create(
            model="m", messages=CHAT, max_tokens=5, stream=True, extra_headers={"X-Simulate": "error_event=1,tokens=5"}
        ))  # fmt: skip
