import { HttpAgent } from "@ag-ui/client";

import { saidBefore } from "./history.js";

const USER = "me";
const THREAD = "ag-ui-example";
const agent = new HttpAgent({ url: "/api/v1/ui/ag-ui", threadId: THREAD });
const said = document.getElementById("said");
const form = document.getElementById("form");
const field = document.getElementById("message");

function line(who) {
  const item = said.appendChild(document.createElement("li"));
  item.appendChild(document.createElement("b")).textContent = `${who}: `;
  return item.appendChild(document.createElement("span"));
}

for (const message of await saidBefore(USER, THREAD)) {
  agent.addMessage(message);
  line(message.role === "user" ? "You" : "Anamnesis").textContent = message.content;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const content = field.value.trim();
  if (!content) return;
  field.value = "";
  line("You").textContent = content;
  const answer = line("Anamnesis");
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  try {
    await agent.runAgent(
      { forwardedProps: { user: USER } },
      {
        onToolCallStartEvent: ({ event: call }) => (answer.textContent += `[${call.toolCallName}] `),
        onTextMessageContentEvent: ({ event: piece }) => (answer.textContent += piece.delta),
        onRunErrorEvent: ({ event: failure }) => (answer.textContent += failure.message),
      },
    );
  } catch (failure) {
    answer.textContent += String(failure);
  }
});
