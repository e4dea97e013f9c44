// Opens pages in Chromium, lets them ask the gateway, and tells what they came to, as JSON.
// node pages.mjs BROWSER GATEWAY FRIEND STRANGER: a program, and three places (address:port).
import { chromium } from "playwright-core";

const [executablePath, gateway, friend, stranger] = process.argv.slice(2);
const port = gateway.split(":")[1];
const browser = await chromium.launch({
  executablePath,
  headless: true,
  // A stranger's name, made to resolve to this machine. Nothing here needs a sandbox.
  args: ["--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1", "--no-proxy-server"],
});

async function on(place, work, ...values) {
  const page = await browser.newPage();
  await page.goto(`http://${place}/`);
  const told = await page.evaluate(work, values);
  await page.close();
  return told;
}

const told = {};
told.friend = await on(
  friend,
  async ([gateway]) => {
    const url = `http://${gateway}/v1/chat/completions`;
    const ask = (model) =>
      fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer none", "x-stainless-lang": "js" },
        body: JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "x" }] }),
      });
    const answer = await ask("main");
    let text = "";
    for (const line of (await answer.text()).split("\n")) {
      if (!line.startsWith("data: {")) continue;
      text += JSON.parse(line.slice(6)).choices[0]?.delta?.content ?? "";
    }
    return { text, level: answer.headers.get("x-segue-level"), refused: (await ask("nothing")).status };
  },
  gateway,
);
told.stranger = await on(
  stranger,
  async ([gateway]) => {
    const url = `http://${gateway}/v1/chat/completions`;
    const body = JSON.stringify({ model: "main", messages: [{ role: "user", content: "x" }] });
    const ask = (more) => fetch(url, { method: "POST", body, ...more });
    const failed = (asked) => asked.then((answer) => `read ${answer.status}`, (error) => String(error));
    return {
      json: await failed(ask({ headers: { "content-type": "application/json" } })),
      text: await failed(ask({ headers: { "content-type": "text/plain" } })),
      blind: (await ask({ mode: "no-cors", headers: { "content-type": "text/plain" } })).type,
    };
  },
  gateway,
);
const page = await browser.newPage();
const answer = await page.goto(`http://evil.example:${port}/v1/models`);
told.rebound = answer.status();
await browser.close();
console.log(JSON.stringify(told));
