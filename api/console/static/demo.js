// The demo: a month of made-up conversations of a separate user, loaded and removed with one click.

import { post, remove } from './api.js'

export const DEMO = 'demo:lin'
const USER = 'anamnesis.user'

/** The user whose memory the console shows, as the browser remembers it. */
export const chosenUser = () => localStorage.getItem(USER) ?? 'me'

export function chooseUser(name, screen = 'chat') {
  localStorage.setItem(USER, name)
  location.hash = `#/${screen}`
  location.reload()
}

export async function loadDemo() {
  await post('/api/v1/demo')
  chooseUser(DEMO, 'timeline')
}

export async function removeDemo() {
  await remove('/api/v1/demo')
  chooseUser('me')
}
