import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { useState } from "react";
import { createRoot } from "react-dom/client";

import { saidBefore } from "./history.js";

const USER = "me";
const CHAT = "ai-sdk-example";
const transport = new DefaultChatTransport({
  api: "/api/v1/ui/chat",
  body: { user: USER },
  headers: { "X-User-Id": USER },
});

function Part({ part }) {
  if (part.type === "text") return <span>{part.text}</span>;
  if (part.type === "dynamic-tool") return <small>{`[${part.toolName}: ${part.state}] `}</small>;
  if (part.type === "source-url") return <small>{` (${part.title})`}</small>;
  return null;
}

function Chat({ before }) {
  const [text, setText] = useState("");
  // With `resume`, a page that is loaded again takes up the answer that it was waiting for.
  const { messages, sendMessage, regenerate, status, error } = useChat({
    id: CHAT,
    messages: before,
    transport,
    resume: true,
  });
  const send = (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    sendMessage({ text });
    setText("");
  };
  return (
    <main>
      <h1>Anamnesis</h1>
      <ul>
        {messages.map((message) => (
          <li key={message.id}>
            <b>{message.role === "user" ? "You: " : "Anamnesis: "}</b>
            {message.parts.map((part, place) => (
              <Part key={place} part={part} />
            ))}
          </li>
        ))}
      </ul>
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        <button disabled={status === "submitted" || status === "streaming"}>Send</button>
        <button type="button" disabled={status !== "ready" || !messages.length} onClick={() => regenerate()}>
          Again
        </button>
      </form>
    </main>
  );
}

const said = await saidBefore(USER, CHAT);
const before = said.map(({ id, role, content }) => ({ id, role, parts: [{ type: "text", text: content }] }));
createRoot(document.getElementById("page")).render(<Chat before={before} />);
