// What a reader prefers in this browser.

export const THEMES = ['system', 'light', 'dark']
const THEME = 'anamnesis.theme'
export const TEMPORARY = 'anamnesis.temporary'

const NOTIFY = 'anamnesis.notify'

/** Whether the browser tells of what is due, and may. */
export const notifies = () => localStorage.getItem(NOTIFY) === 'yes' && globalThis.Notification?.permission === 'granted'

/** Ask the browser for its permission, or do without; answer whether it notifies now. */
export async function chooseNotifying(wanted) {
  localStorage.setItem(NOTIFY, wanted && (await Notification.requestPermission()) === 'granted' ? 'yes' : 'no')
  return notifies()
}

export const chosenTheme = () => localStorage.getItem(THEME) ?? 'system'

export function chooseTheme(name) {
  localStorage.setItem(THEME, name)
  document.documentElement.dataset.theme = name
}
