// Searches a built site as its pages do, with the worker that they start: node search.js SITE FOLDER < QUERIES
// Prints, for each query, the addresses of what is found, best first.
const { readFileSync, readdirSync } = require('node:fs')
const { join } = require('node:path')
const vm = require('node:vm')

const [site, folder] = process.argv.slice(2)
const workers = join(site, 'assets/javascripts/workers')
const [name] = readdirSync(workers).filter((each) => /^search\..*\.js$/.test(each))

let listener
let answer
const scope = { console, addEventListener: (_, heard) => { listener = heard }, postMessage: (told) => answer(told) }
scope.self = scope
scope.importScripts = (...files) => files.forEach((file) => run(join(workers, file)))
const context = vm.createContext(scope)
const run = (file) => vm.runInContext(readFileSync(file, 'utf8'), context)
const ask = (type, data) =>
  new Promise((resolve) => {
    answer = resolve
    listener({ data: { type, data } })
  })

async function main() {
  run(join(workers, name))
  const index = JSON.parse(readFileSync(join(site, folder, 'search/search_index.json'), 'utf8'))
  await ask(0, { ...index, options: { suggest: false } })
  const found = []
  for (const query of JSON.parse(readFileSync(0, 'utf8'))) {
    const { data } = await ask(2, query)
    found.push(data.items.map((pages) => pages[0].location))
  }
  process.stdout.write(JSON.stringify(found))
}

main()
