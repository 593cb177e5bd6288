// The ai package's own transport and reader against /api/v1/ui/chat: a chat, and one that is taken up again.
import { DefaultChatTransport, readUIMessageStream } from "ai";

const [url] = process.argv.slice(2);
const transport = new DefaultChatTransport({ api: `${url}/api/v1/ui/chat`, body: { user: "u-1" } });
const message = (id, text) => ({ id, role: "user", parts: [{ type: "text", text }] });

async function read(stream) {
  let last;
  for await (const shown of readUIMessageStream({ stream, terminateOnError: true })) last = shown;
  return last;
}

const tools = await read(
  await transport.sendMessages({
    chatId: "c-1",
    trigger: "submit-message",
    messageId: undefined,
    messages: [message("m-1", "How late is it by your clock now, please?")],
  }),
);

const leaving = new AbortController();
const broken = await transport.sendMessages({
  chatId: "c-2",
  trigger: "submit-message",
  messageId: undefined,
  messages: [message("m-1", "Count")],
  abortSignal: leaving.signal,
});
const reader = broken.getReader();
while ((await reader.read()).value?.type !== "text-delta");
leaving.abort();
const resumed = await read(
  await transport.reconnectToStream({ chatId: "c-2", headers: { "X-User-Id": "u-1" } }),
);
const idle = await transport.reconnectToStream({ chatId: "c-2", headers: { "X-User-Id": "u-1" } });

const text = (shown) => shown.parts.filter((part) => part.type === "text").map((part) => part.text).join("");
const tool = tools.parts.find((part) => part.type === "dynamic-tool");
console.log(
  JSON.stringify({
    answer: text(tools),
    tool: [tool.toolName, tool.state],
    degraded: tools.metadata.degraded,
    resumed: text(resumed),
    idle,
  }),
);
