// The task of benchmarks.client_tools by Node's clients: node tasks.mjs NAME URL. The last line is the answer.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [name, url] = process.argv.slice(2);
const require = createRequire(`${process.cwd()}/`);
const load = (each) => import(pathToFileURL(require.resolve(each)).href);
const TASK = "Carry out the ten steps where I live.";
const step = ({ n }) => `result-${n}`;
const parameters = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
// The user of a request is a field of its body.
const named = (address, init) =>
  fetch(address, { ...init, body: JSON.stringify({ ...JSON.parse(init.body), user: "u-1" }) });

const aiSdk = async (makeModel) => {
  const { streamText, tool, jsonSchema, stepCountIs, isStepCount } = await load("ai");
  const result = streamText({
    model: await makeModel(),
    prompt: TASK,
    tools: { step: tool({ description: "Carry out a step.", inputSchema: jsonSchema(parameters), execute: step }) },
    stopWhen: (stepCountIs ?? isStepCount)(20),
    onError: ({ error }) => console.error(error),
  });
  return await result.text;
};

const clients = {
  ai_responses: () =>
    aiSdk(async () => (await load("@ai-sdk/openai")).createOpenAI({ baseURL: `${url}/v1`, apiKey: "none", fetch: named }).responses("default")),
  ai_chat: () =>
    aiSdk(async () => (await load("@ai-sdk/openai")).createOpenAI({ baseURL: `${url}/v1`, apiKey: "none", fetch: named }).chat("default")),
  ai_compatible: () =>
    aiSdk(async () => (await load("@ai-sdk/openai-compatible")).createOpenAICompatible({ name: "anamnesis", baseURL: `${url}/v1`, fetch: named })("default")),
  ai_anthropic: () =>
    aiSdk(async () => (await load("@ai-sdk/anthropic")).createAnthropic({ baseURL: `${url}/v1`, apiKey: "none", fetch: named })("default")),
  run_tools: async () => {
    const { default: OpenAI } = await load("openai");
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
    const runner = client.chat.completions.runTools(
      {
        model: "default",
        user: "u-1",
        messages: [{ role: "user", content: TASK }],
        tools: [{ type: "function", function: { name: "step", function: step, parse: JSON.parse, parameters } }],
      },
      { maxChatCompletions: 20 },
    );
    return await runner.finalContent();
  },
};
console.log(await clients[name]());
