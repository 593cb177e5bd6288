// The console's words and formats in the reader's language.

export const LANGUAGES = { en: 'English', zh: '中文' }
const STORED = 'anamnesis.language'

let strings = {}
let language = 'en'

/** The stored choice, or what the browser prefers. */
export function preferredLanguage() {
  const wanted = localStorage.getItem(STORED) ?? navigator.language
  return wanted.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

export async function loadLanguage(name) {
  strings = await (await fetch(new URL(`strings/${name}.json`, import.meta.url))).json()
  language = name
  document.documentElement.lang = name === 'zh' ? 'zh-CN' : 'en'
}

export async function changeLanguage(name) {
  localStorage.setItem(STORED, name)
  await loadLanguage(name)
}

export const currentLanguage = () => language

/** The text of a key, with `{name}` replaced by values and `{name|one|many}` by a number and its noun; a key without
 * a text shows itself, and one with a form for `n` = 1 shows that. */
export function t(key, values = {}) {
  const text = (String(values.n) === '1' && strings[`${key}.one`]) || (strings[key] ?? key)
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g, (whole, name, one, many) =>
    name in values ? `${values[name]}${many === undefined ? '' : ` ${String(values[name]) === '1' ? one : many}`}` : whole)
}

/** The text of a key where there is one. */
export const known = (key, values) => (key in strings ? t(key, values) : null)

/** The text of a key that the API gave, such as a job's status; the API's own word where there is none. */
export const word = (prefix, name) => strings[`${prefix}.${name}`] ?? String(name).replace(/^[a-z_]+$/, (id) => id.replaceAll('_', ' '))

const locale = () => (language === 'zh' ? 'zh-CN' : undefined)
export const number = (value, options) => new Intl.NumberFormat(locale(), options).format(value)
export const percent = (value) => number(value, { style: 'percent', maximumFractionDigits: 0 })
export const milliseconds = (value) =>
  value >= 1000 ? `${number(value / 1000, { maximumFractionDigits: 1 })} s` : `${number(value, { maximumFractionDigits: value < 10 ? 1 : 0 })} ms`
export const bytes = (value) =>
  value >= 1e6 ? `${number(value / 1e6, { maximumFractionDigits: 1 })} MB` : value >= 1e3 ? `${number(value / 1e3, { maximumFractionDigits: 0 })} KB` : `${value} B`

export const dateTime = (at) =>
  new Intl.DateTimeFormat(locale(), { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(at))
export const date = (at, options = { dateStyle: 'medium' }) => new Intl.DateTimeFormat(locale(), options).format(new Date(at))
export const time = (at) => new Intl.DateTimeFormat(locale(), { timeStyle: 'short' }).format(new Date(at))

const STEPS = [[60, 1, 'second'], [3600, 60, 'minute'], [86400, 3600, 'hour']]
const WEEK = 7

/** “5 minutes ago” within a week, a date before. */
export function ago(at) {
  const seconds = (Date.now() - new Date(at)) / 1000
  if (Math.abs(seconds) < 45) return t('just_now')
  const format = new Intl.RelativeTimeFormat(locale() ?? 'en', { numeric: 'auto', style: 'short' })
  const step = STEPS.find(([limit]) => Math.abs(seconds) < limit)
  if (step) return format.format(-Math.round(seconds / step[1]), step[2])
  // “yesterday” is a day of the calendar, and not a number of hours.
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(at).setHours(0, 0, 0, 0)) / 86400e3)
  return Math.abs(days) < WEEK ? format.format(-days, 'day') : date(at)
}

/** The group of a list that a time falls into: today, yesterday, this week, or its month. */
export function period(at) {
  const day = new Date(at)
  const midnight = new Date().setHours(0, 0, 0, 0)
  if (day >= midnight) return t('today')
  if (day >= midnight - 86400e3) return t('yesterday')
  if (day >= midnight - 6 * 86400e3) return t('this_week')
  return date(day, { month: 'long', year: 'numeric' })
}
