// What a reader prefers in this browser.

export const THEMES = ['system', 'light', 'dark']
const THEME = 'anamnesis.theme'
export const TEMPORARY = 'anamnesis.temporary'

export const chosenTheme = () => localStorage.getItem(THEME) ?? 'system'

export function chooseTheme(name) {
  localStorage.setItem(THEME, name)
  document.documentElement.dataset.theme = name
}
