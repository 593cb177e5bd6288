"""Requests that give way: an option that a model refuses is left out at once, and the refusal is remembered."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, cast, get_args

import structlog
from langchain_core.messages import AIMessage, BaseMessage

from services.errors import ModelFailed
from services.llm.request_form import LENGTHS, OPTION_OF, Option, without_tool_messages
from services.llm.shorter_prompts import earlier_images, without_images
from state.turn import Sampling

log = structlog.get_logger(__name__)

LEFT_OUT = "left_out"
"""Metadata key for the names of the parts that the model refused and its request went without."""
_MANNERS = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "reasoning_effort",
    "verbosity",
)
"""Parameters of the caller that may be left out, because an answer without them still answers the request."""
_OTHER = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""The other name of a limit of the answer's length."""
_IMAGES = "images"
_OVER = 1.5
_OVER_TOKENS = 16
"""An answer longer than this multiple of its limit plus these tokens shows that the model ignores the limit."""


KEEP_S = 3600.0
"""Seconds to remember a refusal: the model or its server may have been replaced by then."""


class Refusals:
    """Parameters that the models of one endpoint refuse, kept in this process."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str | int], float] = {}

    def refuses(self, model: str, option: str | int) -> bool:
        """Whether the model recently refused an option, a parameter, or an image by its hash."""
        until = self._until.get((model, option))
        return until is not None and time.monotonic() < until

    def images(self, model: str) -> set[int]:
        """Return the images that the model recently refused, by their hashes."""
        return {each for name, each in self._until if name == model and isinstance(each, int)}

    def remember(self, model: str, option: str | int) -> None:
        now = time.monotonic()
        # Callers may name any number of models.
        self._until = {key: until for key, until in self._until.items() if now < until}
        self._until[model, option] = now + KEEP_S

    def forget(self, model: str, option: str | int) -> None:
        self._until.pop((model, option), None)


class GivingWay:
    """The request for one answer of one model.

    A part counts as refused only if the request without it is answered. Parts without which the answer would be
    wrong are never left out: a form, stop words, and the images of the message itself.
    """

    def __init__(
        self,
        model: str,
        messages: Sequence[BaseMessage],
        options: dict[Option, Any],
        sampling: Sampling,
        *,
        refusals: Refusals,
        leaves_out: Callable[[Option], bool],
        keeps: Collection[Option] = (),
    ) -> None:
        """Take the request, what the model refused before, and the options that may not be left out."""
        self._model = model
        self._messages = list(messages)
        self._options = options
        self._refusals = refusals
        self._keeps = keeps
        self.left_out = [option for option in get_args(Option) if leaves_out(option)]
        self.sampling = sampling
        self._told: list[str] = []
        self._asked_again = False
        self._tried: set[str] = set()
        self._refused: dict[str | int, ModelFailed] = {}
        for name in [*_MANNERS, *LENGTHS]:
            if name in self.sampling and refusals.refuses(model, name):
                self._leave_out_parameter(name)
        self._without_images(refusals.images(model))

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages as they are to be sent."""
        return without_tool_messages(self._messages) if "tools" in self.left_out else self._messages

    @property
    def options(self) -> dict[Option, Any]:
        """The options that are sent."""
        return {option: value for option, value in self._options.items() if option not in self.left_out}

    def give_way(self, failure: ModelFailed) -> bool:
        """Leave out the part that the model has just refused. Returns False if the failure has another reason, or
        the part cannot be left out. A model that wrote a call into its text is asked once more without tools."""
        if failure.topic == "calls":
            again, self._asked_again = not self._asked_again, True
            self.left_out += ["tools"] if "tools" in self.options else []
            return again
        for part in self._candidates(failure):
            if failure.topic == "unnamed":  # of several guesses only the last one can be right
                self._refused = {key: one for key, one in self._refused.items() if one.topic != "unnamed"}
            if self._leave_out(part, failure):
                return True
        return False

    def answered(self, answer: AIMessage) -> AIMessage:
        """Remember which parts were refused, since the request without them was answered. Return the answer with
        their names."""
        for part, failure in self._refused.items():
            self._refusals.remember(self._model, part)
            setting = {"setting": "ANAMNESIS_LLM_TOOLS=off"} if part == "tools" else {}
            option = part if isinstance(part, str) else _IMAGES
            log.warning(
                "model refuses an option", model=self._model, option=option, reason=failure.detail, **setting
            )
        self._note_ignored_limit(answer)
        if not self._told:
            return answer
        metadata = {**answer.response_metadata, LEFT_OUT: list(dict.fromkeys(self._told))}
        return answer.model_copy(update={"response_metadata": metadata})

    def _candidates(self, failure: ModelFailed) -> Iterator[str]:
        if failure.topic == "parameter" and failure.parameter:
            yield failure.parameter
        elif failure.topic == "unnamed":
            yield from ("stream_options", *sorted(LENGTHS), *_MANNERS, "response_format", "tools")
        elif failure.topic == _IMAGES:
            yield _IMAGES
        elif option := refused_option(failure, self.options):
            yield option
        elif failure.topic == "messages":  # a chat template may accept no message between results and the answer
            yield _IMAGES

    def _leave_out(self, part: str, failure: ModelFailed) -> bool:
        if part == _IMAGES:
            hashes = earlier_images(self._messages)
            self._refused |= dict.fromkeys(hashes, failure)
            self._without_images(hashes)
            return bool(hashes)
        if part in self.sampling:
            if part in LENGTHS and failure.topic == "unnamed" and self._tried & LENGTHS:
                return False
            left = self._leave_out_parameter(part)
        else:
            left = part in self.options and part not in self._keeps
            if left:
                self.left_out.append(cast("Option", part))
        if left:
            self._refused[part] = failure
        return left

    def _leave_out_parameter(self, name: str) -> bool:
        """Send a limit of the answer's length under its other name, if that was not refused; leave others out."""
        other = _OTHER.get(name, "")
        self._tried.add(name)
        if name in LENGTHS and other not in {*self.sampling, *self._tried}:
            renamed = {_OTHER.get(key, key): value for key, value in self.sampling.items()}
            self.sampling = cast("Sampling", renamed)
            return not self._refusals.refuses(self._model, other) or self._leave_out_parameter(other)
        if name not in LENGTHS and name not in _MANNERS:
            return False
        self.sampling = cast("Sampling", {key: value for key, value in self.sampling.items() if key != name})
        if other not in self.sampling:
            self._told.append(name)
        return True

    def _without_images(self, hashes: Collection[int]) -> None:
        if hashes and (shorter := without_images(self._messages, hashes)) != self._messages:
            self._messages = shorter
            self._told.append(_IMAGES)

    def _note_ignored_limit(self, answer: AIMessage) -> None:
        """If the model ignored the limit of the answer's length, send the next one under the limit's other
        name."""
        usage = answer.usage_metadata
        for name in LENGTHS & self.sampling.keys():
            most = int(cast("dict[str, Any]", self.sampling)[name])
            if usage and usage["output_tokens"] > most * _OVER + _OVER_TOKENS:
                self._refusals.forget(self._model, _OTHER[name])
                self._refusals.remember(self._model, name)


def refused_option(failure: ModelFailed, sent: Collection[Option]) -> Option | None:
    """Return the option to leave out of a request that failed; None if the failure has other reasons."""
    option = OPTION_OF.get(failure.topic) if failure.topic else None
    if option == "reasoning" and option not in sent:  # the endpoint complains that it is missing
        option = "bare_calls"
    # Servers without structured output report it in many ways, or not at all.
    if option is None and failure.failure == "llm_rejected":
        option = "response_format"
    return option if option in sent else None
