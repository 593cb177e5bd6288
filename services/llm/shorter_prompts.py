"""Shorter prompts for a model that refused one: without images, or without the parts around the message."""

from collections.abc import Collection, Sequence
from typing import cast

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from services.llm.request_form import ContextMessage
from services.text.language import Language, language_of

IMAGE_LEFT_OUT = "🖼 "

_ALONE: dict[Language, str] = {
    "en": "The provider of the language model refused what was said earlier and what is remembered of the user: "
    "it is not shown here. Where the message needs it, say that it cannot be shown at the moment.",
    "zh": "语言模型的服务商拒绝了之前的对话和关于用户的记忆，这里看不到。"
    "如果这条消息需要它们，请说明暂时无法看到。",
}
_UNSHOWN: dict[Language, str] = {
    "en": "[Images that the language model does not take are not shown.]",
    "zh": "[图片未显示：语言模型不接受。]",
}
_NO_RESULT: dict[Language, str] = {
    "en": "The provider of the language model refused this result: it cannot be shown.",
    "zh": "语言模型的服务商拒绝了这个结果，无法显示。",
}


def without_context(messages: Sequence[BaseMessage]) -> tuple[list[BaseMessage], str] | None:
    """Return a prompt with the message alone, and the name of what was left out; None if nothing stands around the
    message.

    Tool results come last. While there are any, they alone are hidden, because everything before them was accepted
    already.
    """
    asked = max((n for n, each in enumerate(messages) if isinstance(each, HumanMessage)), default=None)
    if asked is None:
        return None
    language, after = language_of([messages[asked].text]), messages[asked + 1 :]
    if any(isinstance(each, ToolMessage) for each in after):
        hidden = {"content": _NO_RESULT[language]}
        less = [each.model_copy(update=hidden) if isinstance(each, ToolMessage) else each for each in after]
        return [*messages[: asked + 1], *less], "tools"
    first = messages[0] if isinstance(messages[0], SystemMessage) else None
    if asked == (0 if first is None else 1):
        return None
    told = ContextMessage(content=_ALONE[language])
    return [*([first] if first is not None else []), told, messages[asked]], "history"


def images_of(message: BaseMessage) -> list[str]:
    """Return the addresses of a message's images."""
    parts = message.content if isinstance(message.content, list) else ()
    return [str(each["image_url"]["url"]) for each in parts if isinstance(each, dict) and "image_url" in each]


def earlier_images(messages: Sequence[BaseMessage]) -> set[int]:
    """Return the images of all messages but the user's last, by their hashes."""
    last = _last(messages)
    return {hash(url) for each in messages if each is not last for url in images_of(each)}


def without_images(messages: Sequence[BaseMessage], hashes: Collection[int]) -> list[BaseMessage]:
    """Replace the images with these hashes by a mark, except for those in the user's last message. A tool's result
    also describes its images in words."""
    last = _last(messages)

    def without(message: BaseMessage) -> BaseMessage:
        if message is last or not any(hash(url) in hashes for url in images_of(message)):
            return message
        of_tool = isinstance(message, ToolMessage)
        told = f"{message.text}\n{_UNSHOWN[language_of([message.text])]}" if of_tool else ""
        return message.model_copy(update={"content": told or f"{IMAGE_LEFT_OUT}{message.text}"})

    return list(map(without, messages))


def with_newest_images(messages: Sequence[AnyMessage], most: int) -> list[AnyMessage]:
    """Keep the newest images of a turn's messages, up to `most` characters; older ones are described in words."""
    old: set[int] = set()
    for message in reversed(messages):
        urls = images_of(message)
        most -= sum(map(len, urls))
        old |= {hash(url) for url in urls if most < 0}
    return cast("list[AnyMessage]", without_images(messages, old)) if old else list(messages)


def _last(messages: Sequence[BaseMessage]) -> BaseMessage | None:
    return next((each for each in reversed(messages) if isinstance(each, HumanMessage)), None)
