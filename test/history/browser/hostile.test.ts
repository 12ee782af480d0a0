/** Hostile text in a page is shown, never run; and if some got in as HTML, the page's policy would keep it from doing anything. */
import { expect, test } from "bun:test";
import { renderBuildReport } from "../../../src/history/report/report.ts";
import { shop } from "../example-builds.ts";
import { hostileBuild } from "../hostile-build.ts";
import { startBrowser } from "./browser.ts";

const browser = await startBrowser();

function startServer(): { url: string; requests: readonly string[] } & Disposable {
  const requests: string[] = [];
  const server = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    fetch({ url }) {
      requests.push(url);
      return new Response("document.title = 'run'", { headers: { "Content-Type": "text/javascript" } });
    },
  });
  return { url: server.url.href, requests, [Symbol.dispose]: () => void server.stop(true) };
}

test.each([
  ["elements", "</pre></code></title></textarea>--><b>"],
  ["the end of the style and of the script", "</style></script><style>body{display:none}</style>"],
  ["the end of a picture", "</text></title></svg><svg onload=alert(1)>"],
  ["the ends of attributes", `" onfocus=alert(1) autofocus x=" ' onclick=alert(1) \` onload=alert(1)`],
  ["entities and addresses", "&lt;b&gt;&#60;i&#62; javascript:alert(1)//"],
  ["a refresh and a base", "<meta http-equiv=refresh content='0;url=//x'><base href=//x><form action=//x>"],
  ["control characters", "\u0000\u0007\u001b]0;title\u0007\u001b[2J\u009b31m\r\u007f\ufeff"],
  ["marks of direction", "\u202e\u202d\u2066\u200f\u061c\u2069"],
  ["halves of pairs, and characters that are none", "\ud800 \udfff \uffff \ufdd0"],
])("%s", async (_, text) => {
  using server = startServer();
  const html = renderBuildReport(hostileBuild(text, server.url));
  for (const javaScriptEnabled of [true, false]) {
    await using opened = await browser.open(html, { javaScriptEnabled });
    const { page } = opened;
    const found = page.locator(
      "img, iframe, form, b:not(.n), i:not(.o i), meta[http-equiv=refresh], base, script[src]",
    );
    expect(await found.count()).toBe(0);
    expect(await page.locator("style, script, main, h1").count()).toBe(4);
    expect(await page.locator("h1").innerText()).toContain(`<img src=${server.url} onerror=alert(1)>`);
    expect(await page.locator("body").innerText()).not.toMatch(
      /[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/,
    );
    await page.locator("#s1 summary").click();
    expect(await page.locator("#s1 pre").innerText()).toContain("</main><script>alert(3)</script>");
    expect({ noticed: opened.noticed, requests: server.requests }).toEqual({ noticed: [], requests: [] });
  }
});

test("even HTML that got into a page could run nothing and reach nobody", async () => {
  using server = startServer();
  await using opened = await browser.open(renderBuildReport(shop));
  const { page } = opened;
  await page.evaluate(`
    globalThis.violations = [];
    addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective));
    const add = (name, given) => document.body.append(Object.assign(document.createElement(name), given));
    add("script", { textContent: "document.title = 'run'" });
    add("script", { src: "${server.url}a.js" });
    add("img", { src: "${server.url}a.png" });
    add("link", { rel: "stylesheet", href: "${server.url}a.css" });
    add("style", { textContent: "body { display: none }" });
    add("iframe", { src: "${server.url}" });
    add("div", { innerHTML: "<a style='position:fixed' onclick='document.title = 1' id=evil>x</a>" });
    document.getElementById("evil").click();
    add("form", { action: "${server.url}", id: "sent" });
    document.getElementById("sent").submit();
    fetch("${server.url}").catch(() => {});
    try { new WebSocket("${server.url.replace("http", "ws")}") } catch {}
  `);
  const directives = [
    "script-src-elem",
    "script-src-attr",
    "style-src-elem",
    "style-src-attr",
    "img-src",
    "frame-src",
    "form-action",
    "connect-src",
  ];
  await page.waitForFunction(`${JSON.stringify(directives)}.every((each) => violations.includes(each))`);
  expect(await page.evaluate<string>("location.href + document.title")).toContain("shop/web:1.4.2");
  expect(await page.locator("h1").isVisible()).toBe(true);
  expect(server.requests).toEqual([]);
});
