// The demo: a month of made-up conversations of a separate user, loaded and removed with one click.

import { get, post, remove } from './api.js'
import { currentLanguage } from './i18n.js'

export const DEMO = 'demo:lin'
const ITS = new Set([DEMO, 'demo-workshop', 'demo-recall']) // its user, its expert and its experiment
const OPENS = { en: 'demo-cake', zh: 'demo-mother' }
const USER = 'anamnesis.user'
const BEFORE = 'anamnesis.user-before-demo'

/** The user whose memory the console shows, as the browser remembers it. */
export const chosenUser = () => localStorage.getItem(USER) ?? 'me'

export function chooseUser(name, screen = 'chat') {
  if (name === DEMO && chosenUser() !== DEMO) localStorage.setItem(BEFORE, chosenUser())
  localStorage.setItem(USER, name)
  location.hash = `#/${screen}`
  location.reload()
}

/** A page of a list without what belongs to the demo, which only its own user sees. */
export const withoutDemo = (page) => (chosenUser() === DEMO ? page : { ...page, items: page.items.filter((each) => !ITS.has(each.name ?? each.user_id)) })

/** Load the demo, unless it is there, and open one of its chats in the reader's language with its “Why?”. */
export async function loadDemo() {
  const chats = async () => (await get('/api/v1/conversations', { user_id: DEMO, limit: 50 })).items
  let there = await chats()
  if (!there.length) {
    await post('/api/v1/demo')
    there = await chats()
  }
  const opened = there.find((each) => each.session_id === OPENS[currentLanguage()]) ?? there[0]
  chooseUser(DEMO, `chat/${opened.id}/why`)
}

/** Show the user again who was shown before the demo. */
export const leaveDemo = () => chooseUser(localStorage.getItem(BEFORE) ?? 'me')

export async function removeDemo() {
  await remove('/api/v1/demo')
  leaveDemo()
}
