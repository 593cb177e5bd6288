// Settings: who the user is, how this browser shows things, and what is brought from elsewhere or taken along.

import { download, jsonLines, patch, send, userPath } from '../api.js'
import { currentLanguage, LANGUAGES, number, t } from '../i18n.js'
import { Button, Field, Failure, html, Loaded, Original, Page, Select, toast, useLoad, useRef, useState } from '../ui.js'
import { chooseNotifying, chooseTheme, chosenTheme, notifies, TEMPORARY, THEMES } from '../preferences.js'
import { userOf } from '../shell.js'
import { useForm } from './parts.js'

export const screen = 'settings'
const VENDORS = [['chatgpt', 'ChatGPT'], ['claude', 'Claude'], ['openwebui', 'Open WebUI'], ['librechat', 'LibreChat'], ['deepseek', 'DeepSeek'], ['gemini', 'Gemini'], ['sillytavern', 'SillyTavern'], ['characterai', 'Character.AI'], ['telegram', 'Telegram'], ['whatsapp', 'WhatsApp'], ['mem0', 'mem0'], ['zep', 'Zep'], ['letta', 'Letta'], ['langmem', 'LangMem'], ['hindsight', 'Hindsight']]
const NOBODY = { display_name: null, memory: true, timezone: Intl.DateTimeFormat().resolvedOptions().timeZone, locale: null }

export function Screen({ service, user, may, conversations, onLanguage, onNamed }) {
  const found = useLoad(async () => (may('memory:read') && (await userOf(service, user))) || NOBODY, [user])
  return html`<${Page} title=${t('nav.settings')} lead=${t('settings.lead')}>
    <div class="cards settings">
      ${may('memory:write') && html`<${Loaded} of=${found}>${found.data && html`<${You} user=${user} known=${found.data} onNamed=${onNamed} />`}<//>`}
      ${may('admin') && html`<section class="card"><h2>${t('nav.model')}</h2><p class="muted">${service.offline ? t('model.offline') : t('model.answers', { model: service.model })}</p><p class="row end"><a class="button" href="#/model">${t(service.offline ? 'connect.title' : 'model.another')}</a></p></section>`}
      <${Browser} onLanguage=${onLanguage} />
      ${may('memory:write') && html`<${Archive} user=${user} conversations=${conversations} />`}
    </div>
  <//>`
}

function You({ user, known, onNamed }) {
  const [form, set] = useForm({ display_name: known.display_name ?? '', timezone: known.timezone, locale: known.locale ?? '', memory: known.memory, quiet_hours: known.quiet_hours ?? '' })
  const save = async () => {
    // A user is created with the first message, or with a line that says there is one.
    if (known === NOBODY) await send('POST', '/api/v1/import', { body: JSON.stringify({ kind: 'user', user_id: user, timezone: form.timezone }), headers: { 'Content-Type': 'application/x-ndjson' } })
    await patch(userPath(user), { display_name: form.display_name.trim() || null, timezone: form.timezone, locale: form.locale || null, memory: form.memory, quiet_hours: form.quiet_hours || null })
    onNamed()
    toast(t('settings.saved'))
  }
  return html`<section class="card"><h2>${t('settings.you')}</h2>
    <${Field} label=${t('users.display_name')}><input maxlength="200" autocomplete="name" value=${form.display_name} onInput=${set('display_name')} /><//>
    <${Field} label=${t('users.zone')} hint=${t('settings.zone_hint')}><input list="zones" value=${form.timezone} onInput=${set('timezone')} /><datalist id="zones">${Intl.supportedValuesOf('timeZone').map((zone) => html`<option value=${zone} />`)}</datalist><//>
    <${Field} label=${t('settings.answers_in')} hint=${t('settings.answers_hint')}><${Select} value=${form.locale} onChange=${set('locale')} options=${[...new Set(['', 'en', 'zh-CN', form.locale])].map((each) => [each, { '': t('settings.as_written'), en: 'English', 'zh-CN': '中文' }[each] ?? each])} /><//>
    <${Field} label=${t('settings.quiet')} hint=${t('settings.quiet_hint')}><${Select} value=${form.quiet_hours} onChange=${set('quiet_hours')} options=${[...new Set(['', 'never', '22:00-07:00', 'always', form.quiet_hours])].map((each) => [each, { '': t('settings.quiet_unset'), never: t('settings.quiet_never'), always: t('settings.quiet_always') }[each] ?? each])} /><//>
    <label class="check"><input type="checkbox" checked=${form.memory} onChange=${set('memory')} />${t('settings.memory')}</label>
    <p class="muted small-text">${t('settings.memory_hint')}</p>
    <div class="row end"><${Button} onClick=${() => download(userPath(user, 'export'), `${user}.jsonl`)}>${t('settings.export')}<//><${Button} kind="primary" onClick=${save}>${t('save')}<//></div>
  </section>`
}

function Browser({ onLanguage }) {
  const [theme, setTheme] = useState(chosenTheme)
  const [temporary, setTemporary] = useState(localStorage.getItem(TEMPORARY) === 'yes')
  const [notify, setNotify] = useState(notifies)
  const choose = (name) => {
    chooseTheme(name)
    setTheme(name)
  }
  const prefer = (event) => {
    localStorage.setItem(TEMPORARY, event.target.checked ? 'yes' : 'no')
    setTemporary(event.target.checked)
  }
  return html`<section class="card"><h2>${t('settings.browser')}</h2>
    <${Field} label=${t('settings.theme')}><${Select} value=${theme} onChange=${choose} options=${THEMES.map((each) => [each, t(`theme.${each}`)])} /><//>
    <${Field} label=${t('users.locale')}><${Select} value=${currentLanguage()} onChange=${onLanguage} options=${Object.entries(LANGUAGES)} /><//>
    <label class="check"><input type="checkbox" checked=${temporary} onChange=${prefer} />${t('settings.temporary')}</label>
    <p class="muted small-text">${t('settings.temporary_hint')}</p>
    ${globalThis.Notification && navigator.locks && html`<label class="check"><input type="checkbox" checked=${notify} onChange=${async (event) => setNotify(await chooseNotifying(event.target.checked))} />${t('settings.notify')}</label>`}
  </section>`
}

/** Bring the archive of another product: sent, then read with its progress. */
function Archive({ user, conversations }) {
  const [vendor, setVendor] = useState('chatgpt')
  const [at, setAt] = useState(null)
  const [failure, setFailure] = useState(null)
  const file = useRef()
  const bring = async (chosen) => {
    setFailure(null)
    setAt({ sending: true })
    try {
      const response = await send('POST', userPath(user, 'archive-imports'), { query: { vendor }, body: chosen, headers: { 'Content-Type': 'application/octet-stream' }, raw: true })
      for await (const line of jsonLines(response)) setAt(line)
      conversations.reload()
    } catch (error) {
      setFailure(error)
      setAt(null)
    }
  }
  const busy = at && !at.done
  return html`<section class="card"><h2>${t('settings.bring')}</h2>
    <p class="muted">${t('settings.bring_note')}</p>
    <div class="row"><${Select} aria-label=${t('settings.from')} value=${vendor} disabled=${busy} onChange=${setVendor} options=${VENDORS} />
      <input ref=${file} type="file" hidden accept=".zip,.json,.jsonl,.txt,.af" onChange=${(event) => { bring(event.target.files[0]); event.target.value = '' }} />
      <button type="button" class="button" disabled=${busy} onClick=${() => file.current.click()}>${t('settings.choose_archive')}</button></div>
    ${busy && html`<progress aria-label=${t('settings.bring')} max=${at.size ?? 1} value=${at.sending ? undefined : at.read}></progress><p class="muted" role="status">${at.sending ? t('settings.sending') : t('settings.reading', { n: number(at.messages) })}</p>`}
    ${at?.done && html`<p role="status">${t('settings.brought', { conversations: number(at.conversations), messages: number(at.messages), memories: number(at.memories), imported: number(at.imported), skipped: number(at.skipped) })}</p>
      ${at.problem && html`<div class="bad"><p>${t('settings.broke_off')}</p><${Original} text=${at.problem} /></div>`}${at.refused > 0 && html`<p class="bad">${t('settings.refused', { n: number(at.refused) })}</p>`}${at.errors.slice(0, 5).map((error) => html`<${Original} text=${error} />`)}`}
    ${failure && html`<${Failure} error=${failure} />`}
  </section>`
}
