// The demo: a month of made-up conversations of a separate user, loaded and removed with one click.

import { get, post, remove } from './api.js'

export const DEMO = 'demo:lin'
const USER = 'anamnesis.user'
const BEFORE = 'anamnesis.user-before-demo'

/** The user whose memory the console shows, as the browser remembers it. */
export const chosenUser = () => localStorage.getItem(USER) ?? 'me'

export function chooseUser(name, screen = 'chat') {
  localStorage.setItem(USER, name)
  location.hash = `#/${screen}`
  location.reload()
}

export async function loadDemo() {
  await post('/api/v1/demo')
  localStorage.setItem(BEFORE, chosenUser())
  const { items } = await get('/api/v1/conversations', { user_id: DEMO, limit: 1 })
  chooseUser(DEMO, `chat/${items[0].id}`) // the newest, each answer of which has its “Why?”
}

/** Show the user again who was shown before the demo. */
export const leaveDemo = () => chooseUser(localStorage.getItem(BEFORE) ?? 'me')

export async function removeDemo() {
  await remove('/api/v1/demo')
  leaveDemo()
}
