// What both Node scripts share: cases in, reports out, eight calls at a time.

import { readFileSync } from 'node:fs';

/** Makes every case's call with the function of its `how`, and writes the reports. */
export async function main(sdk, hows, errorOf) {
  const cases = JSON.parse(readFileSync(0, 'utf8'));
  const reports = new Array(cases.length);
  let next = 0;
  const worker = async () => {
    while (next < cases.length) {
      const at = next++;
      const { name, how } = cases[at];
      const report = { name, how, id: [], model: [], created: [], role: null, text: '', calls: [], blocks: [],
        finish: null, usage: null, error: null };
      try {
        await hows[how](cases[at], report);
      } catch (error) {
        report.error = errorOf(error);
      }
      reports[at] = report;
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  process.stdout.write(JSON.stringify({ sdk, reports }));
}

/** Notes what must be the same in every chunk of a turn. */
export function note(report, part) {
  for (const key of ['id', 'model', 'created']) {
    if (part[key] !== undefined && !report[key].includes(part[key])) report[key].push(part[key]);
  }
}

/** An installed package's version. */
export function version(name) {
  return JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8')).version;
}
