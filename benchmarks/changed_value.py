"""How much of a prompt's beginning is reused after a value changed: `python -m benchmarks.changed_value`.

A conversation is played in which the model corrects one thing that it knows every third turn. The stable part of
each prompt is compared with the prompt before, by the stand-in's tokenizer.
"""

from benchmarks.conversation_play import Prompt, common_beginning, stable_part
from benchmarks.conversation_rig import rig
from benchmarks.dialogue import CHAT_MODEL, message_of, prompt_tokens
from tests.support.model_server import Received, Reply, ToolCall

_TURNS, _EVERY, _SEED = 24, 3, 7
_CHANGES = "By the way, I have changed the subject of my project to number"


def _reply(received: Received, *, told: Reply) -> Reply:
    """Correct the value when the message says so, and answer as usual."""
    message = received.prompt[-1][1]
    if received.body.get("model") != CHAT_MODEL or _CHANGES not in message:
        return told
    number = message.rsplit(" ", 1)[-1].strip(".")
    call = {"text": f"works on project number {number}", "replaces": "works on project"}
    return Reply(tool_calls=[ToolCall("remember", call)])


def main() -> None:
    """Play the conversation and print the shares."""
    kept: list[float] = []
    with rig() as service:
        usual = service.model.default
        assert callable(usual)

        def reply(received: Received) -> Reply:
            return _reply(received, told=usual(received))

        service.model.default = reply
        before: Prompt = []
        for turn in range(1, _TURNS + 1):
            changes = turn % _EVERY == 0
            message = f"{_CHANGES} {turn}." if changes else message_of(_SEED, turn)
            service.say("changing", message)
            prompt = next(one.prompt for one in service.model.requests if one.body.get("model") == CHAT_MODEL)
            service.model.requests.clear()
            if before and (turn - 1) % _EVERY == 0:
                stable = stable_part(before)
                kept.append(prompt_tokens(common_beginning(stable, prompt)) / prompt_tokens(stable))
            before = prompt
            service.settle()
    mean = sum(kept) / len(kept)
    print(f"{mean:.3f} of the stable part kept after a change, {len(kept)} turns, least {min(kept):.3f}")


if __name__ == "__main__":
    main()
