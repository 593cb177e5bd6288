// What happens without a request of this page: a promise that was kept is shown, and told by the browser if allowed.

import { events, get, send, userPath } from './api.js'
import { t } from './i18n.js'
import { notifies } from './preferences.js'
import { toast } from './ui.js'

const AGAIN_MS = 5_000
const tabs = new BroadcastChannel('anamnesis')

/** Listen until the signal; of all tabs one listens, so that nothing is told twice. */
export const listen = (user, signal) =>
  navigator.locks?.request(`anamnesis events ${user}`, { signal }, () => follow(user, signal)).catch(() => {})

async function follow(user, signal) {
  let last
  while (!signal.aborted) {
    try {
      const response = await send('GET', userPath(user, 'events'), { signal, raw: true, headers: last ? { 'Last-Event-ID': last } : {} })
      for await (const event of events(response)) {
        last = String(event.id)
        if (event.kind === 'promise.due') await tell(user, event.about)
      }
    } catch (problem) {
      if (problem.status >= 400 && problem.status < 500) return
    }
    await new Promise((done) => setTimeout(done, AGAIN_MS))
  }
}

async function tell(user, { promise_id: id, message_id: tag, conversation_id: conversation }) {
  tabs.postMessage(conversation)
  const { text } = await get(userPath(user, 'promises', id))
  const open = () => (location.hash = `#/chat/${conversation}`)
  toast(t('promises.due', { text }), { action: { label: t('open_conversation'), run: open } })
  if (!notifies()) return
  new Notification(t('nav.promises'), { body: text, tag }).onclick = () => {
    focus()
    open()
  }
}
