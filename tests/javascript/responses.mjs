// The openai SDK against /v1: a response whose stream is broken after every event, and taken up again.
import OpenAI from "openai";

const [url] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });

const first = await client.chat.completions.create({
  model: "default",
  user: "u-1",
  messages: [{ role: "user", content: "Hello" }],
});

const whole = [];
for await (const event of await client.responses.create({
  model: "default",
  input: "Count",
  safety_identifier: "u-1",
  stream: true,
})) {
  whole.push(event);
}
const id = whole[0].response.id;

let resumed = 0;
for (const broken of whole.slice(0, -1)) {
  const rest = [];
  const stream = await client.responses.retrieve(id, { stream: true, starting_after: broken.sequence_number });
  for await (const event of stream) rest.push(event);
  const expected = whole.filter((event) => event.sequence_number > broken.sequence_number);
  if (JSON.stringify(rest) !== JSON.stringify(expected)) {
    throw new Error(`after ${broken.sequence_number}: ${JSON.stringify(rest)}`);
  }
  resumed += 1;
}

const models = [];
for await (const model of client.models.list()) models.push(model.id);
const refused = await client.models.retrieve("nobody").catch((error) => error.status);

console.log(
  JSON.stringify({
    answer: first.choices[0].message.content,
    text: whole.at(-1).response.output[0].content[0].text,
    events: whole.length,
    resumed,
    models,
    refused,
  }),
);
