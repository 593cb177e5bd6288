// What was said before in a conversation, oldest first: a page that is loaded again begins with it.
export async function saidBefore(user, session) {
  const named = new URLSearchParams({ user_id: user, session_id: session });
  const { items: conversations } = await read(`/api/v1/conversations?${named}`);
  const messages = [];
  let after = null;
  while (conversations.length) {
    const page = new URLSearchParams({ limit: 100, ...(after && { after }) });
    const { items, next } = await read(`/api/v1/conversations/${conversations[0].id}/messages?${page}`);
    messages.push(...items);
    if (!next) break;
    after = next;
  }
  return messages.map(({ id, role, content }) => ({ id, role, content }));
}

async function read(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}
