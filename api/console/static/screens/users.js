// Users: listed, imported with a look ahead, exported, and erased with a receipt.

import { download, get, patch, remove, send, userPath } from '../api.js'
import { number, t, word } from '../i18n.js'
import { Button, Confirm, Dialog, Field, Failure, Form, html, IconButton, Loaded, More, Original, Page, usePages, useRef, useSettled, useState, When } from '../ui.js'
import { chooseUser, withoutDemo } from '../demo.js'
import { useForm } from './parts.js'

export const screen = 'users'
const count = (value) => (value === undefined ? '–' : number(value)) // a single user's own are not counted
const BATCH = 2000 // lines of an import that are sent at once

export function Screen({ service, may }) {
  const [prefix, setPrefix] = useState('')
  const [dialog, setDialog] = useState(null)
  const settled = useSettled(prefix)
  const list = usePages(async (after) => (service.user_id ? { items: [await get(userPath(service.user_id))], next: null } : get('/api/v1/users', { prefix: settled || undefined, after, limit: 50 }).then((page) => (settled ? page : withoutDemo(page)))), [settled])
  return html`<${Page} title=${t('nav.users')} lead=${t('users.lead')} actions=${may('memory:write') && html`<button type="button" class="button primary" onClick=${() => setDialog({ kind: 'import' })}>${t('users.import')}</button>`}>
    ${!service.user_id && html`<div class="filters"><input type="search" placeholder=${t('users.search')} aria-label=${t('users.search')} value=${prefix} onInput=${(event) => setPrefix(event.target.value)} /></div>`}
    <${Loaded} of=${list} empty=${t('users.none')} emptyText=${t('users.none_hint')}>
      <div class="scroll-x acts" tabindex="0"><table><thead><tr><th>${t('user')}</th><th class="num">${t('users.conversations')}</th><th class="num">${t('users.messages')}</th><th class="num">${t('users.episodes')}</th><th>${t('users.zone')}</th><th>${t('users.active')}</th><th><span class="unseen">${t('actions')}</span></th></tr></thead><tbody>
        ${list.items?.map((each) => html`<tr key=${each.user_id}><td><button type="button" class="link" onClick=${() => chooseUser(each.user_id, 'known')}>${each.display_name ?? each.user_id}</button>${each.display_name && html`<br /><small class="muted">${each.user_id}</small>`}</td><td class="num">${count(each.conversations)}</td><td class="num">${count(each.messages)}</td><td class="num">${count(each.episodes)}</td><td>${each.timezone}</td><td><${When} at=${each.last_active_at} /></td><td><div class="row">
          <${IconButton} icon="edit" label=${t('edit')} onClick=${() => setDialog({ kind: 'edit', each })} />
          <${IconButton} icon="download" label=${t('users.export')} onClick=${() => download(userPath(each.user_id, 'export'), `${each.user_id}.jsonl`)} />
          ${may('admin') && html`<${IconButton} icon="trash" label=${t('users.erase')} onClick=${() => setDialog({ kind: 'erase', each })} />`}</div></td></tr>`)}
      </tbody></table></div><${More} of=${list} />
    <//>
    ${dialog?.kind === 'edit' && html`<${Edit} user=${dialog.each} onClose=${() => setDialog(null)} onDone=${list.reload} />`}
    ${dialog?.kind === 'erase' && html`<${Erase} user=${dialog.each} onClose=${() => { setDialog(null); list.reload() }} />`}
    ${dialog?.kind === 'import' && html`<${Import} onClose=${() => { setDialog(null); list.reload() }} />`}
  <//>`
}

function Edit({ user, onClose, onDone }) {
  const [form, set] = useForm({ display_name: user.display_name ?? '', timezone: user.timezone, locale: user.locale ?? '' })
  const save = () => patch(userPath(user.user_id), { display_name: form.display_name || null, timezone: form.timezone, locale: form.locale || null }).then(onDone)
  return html`<${Confirm} title=${user.user_id} action=${t('save')} kind="primary" onConfirm=${save} onClose=${onClose}>
    <${Field} label=${t('users.display_name')}><input autofocus value=${form.display_name} onInput=${set('display_name')} /><//>
    <${Field} label=${t('users.zone')}><input value=${form.timezone} onInput=${set('timezone')} list="zones" /><datalist id="zones">${Intl.supportedValuesOf('timeZone').map((zone) => html`<option value=${zone} />`)}</datalist><//>
    <${Field} label=${t('users.locale')}><input value=${form.locale} onInput=${set('locale')} /><//>
  <//>`
}

function Erase({ user, onClose }) {
  const [typed, setTyped] = useState('')
  const [receipt, setReceipt] = useState(null)
  const erase = async () => setReceipt(await remove(userPath(user.user_id)))
  if (receipt) {
    return html`<${Dialog} title=${t('users.receipt')} onClose=${onClose}>
      <p>${t('users.erased', { name: receipt.user_id })}</p>
      ${Object.entries(receipt.removed).map(([store, counts]) => html`<h3>${word('dependency', store)}</h3><dl class="pairs">${Object.entries(counts).filter(([, count]) => count > 0).map(([what, count]) => html`<dt>${word('removed', what)}</dt><dd class="num">${number(count)}</dd>`)}</dl>`)}
      ${receipt.pending.length > 0 && html`<p class="bad">${t('users.pending', { what: receipt.pending.map((each) => word('dependency', each)).join(t('list_separator')) })}</p>`}
    <//>`
  }
  return html`<${Dialog} title=${t('users.erase_title', { name: user.user_id })} onClose=${onClose}><${Form} action=${t('users.erase')} kind="danger" missing=${typed === user.user_id ? null : t('users.type_name', { name: user.user_id })} onSubmit=${erase} onClose=${onClose}>
    <p>${t('users.erase_note', { conversations: user.conversations ?? 0, messages: user.messages ?? 0 })}</p>
    <${Field} label=${t('users.type_name', { name: user.user_id })}><input autofocus autocomplete="off" value=${typed} onInput=${(event) => setTyped(event.target.value)} /><//>
  <//><//>`
}

function Import({ onClose }) {
  const [look, setLook] = useState(null)
  const [result, setResult] = useState(null)
  const [sent, setSent] = useState(0)
  const [failure, setFailure] = useState(null)
  const stopped = useRef(false)
  const read = async (file) => {
    setFailure(null)
    const lines = (await file.text()).split('\n').filter((line) => line.trim())
    const kinds = {}
    const users = new Set()
    let bad = 0
    for (const line of lines) {
      try {
        const each = JSON.parse(line)
        kinds[each.kind ?? 'message'] = (kinds[each.kind ?? 'message'] ?? 0) + 1
        users.add(each.user_id)
      } catch {
        bad++
      }
    }
    setLook({ name: file.name, lines, kinds, users: [...users], bad })
  }
  const run = async () => {
    const total = { imported: 0, skipped: 0, refused: 0, errors: [] }
    setResult({ ...total, running: true })
    try {
      for (let at = 0; at < look.lines.length && !stopped.current; at += BATCH) {
        const answer = await send('POST', '/api/v1/import', { body: look.lines.slice(at, at + BATCH).join('\n'), headers: { 'Content-Type': 'application/x-ndjson' } })
        for (const name of ['imported', 'skipped', 'refused']) total[name] += answer[name]
        total.errors.push(...answer.errors.map((error) => ({ ...error, line: error.line + at })))
        setSent(Math.min(at + BATCH, look.lines.length))
        setResult({ ...total, running: true })
      }
    } catch (error) {
      setFailure(error)
    }
    setResult({ ...total, running: false })
  }
  return html`<${Dialog} title=${t('users.import')} onClose=${() => { stopped.current = true; onClose() }}>
    ${!look && html`<p class="muted">${t('users.import_note')}</p><input type="file" accept=".jsonl,.ndjson,.json" aria-label=${t('users.file')} onChange=${(event) => event.target.files[0] && read(event.target.files[0])} />`}
    ${look && html`<h3>${look.name}</h3><p>${t('users.look', { lines: number(look.lines.length), users: look.users.slice(0, 5).join(', ') })}</p>
      <dl class="pairs">${Object.entries(look.kinds).map(([kind, count]) => html`<dt>${word('line', kind)}</dt><dd class="num">${number(count)}</dd>`)}${look.bad > 0 && html`<dt class="bad">${t('users.unreadable')}</dt><dd class="num">${number(look.bad)}</dd>`}</dl>`}
    ${result && html`<progress max=${look.lines.length} value=${sent} aria-label=${t('users.import')}></progress><p>${t('users.result', result)}</p>${result.errors.slice(0, 20).map((error) => html`<div class="bad"><small>${t('users.line', error)}</small> <${Original} text=${error.reason} /></div>`)}`}
    ${failure && html`<${Failure} error=${failure} />`}
    <footer>${look && !result && html`<button type="button" class="button quiet" onClick=${() => setLook(null)}>${t('users.other_file')}</button><${Button} kind="primary" onClick=${run}>${t('users.import_now')}<//>`}${result && !result.running && html`<button type="button" class="button primary" onClick=${onClose}>${t('close')}</button>`}</footer>
  <//>`
}
