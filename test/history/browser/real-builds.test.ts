/** Pages about real builds of the embedded engine, in a browser: a stranger finds there what people come for. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { BoughError } from "../../../src/errors.ts";
import { runBough, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { writeFiles } from "../../support/files.ts";
import { startBrowser } from "./browser.ts";

const environment = { BOUGH_HOME: temporaryDirectory() };
const layout = await makeBusyboxLayout(temporaryDirectory());
await bough(["images", "import", layout, "--tag", "base:1"]);
const browser = await startBrowser();

function bough(words: readonly string[], options: Partial<Parameters<typeof runBough>[1]> = {}) {
  return runBough(["--local", ...words], { workingDirectory: "/", environment, ...options });
}

/** Builds a context, and returns the page about that. */
async function buildPage(
  context: string,
  words: readonly string[] = [],
  options: Parameters<typeof bough>[1] = {},
): Promise<string> {
  const file = join(temporaryDirectory(), "build.html");
  await bough(["build", "--docker", context, "--report", file, ...words], options);
  return await Bun.file(file).text();
}

/** Returns what is seen of a step after a click on it. */
async function detailsOf(page: Page, step: number): Promise<string> {
  const row = page.locator(`#s${step}`);
  await row.locator("summary").click();
  return await row.innerText();
}

test("three stages: the slowest step, why step 7 was not cached, and the directory that makes the image large", async () => {
  const context = temporaryDirectory();
  const dockerfile = `
FROM base:1 AS deps
WORKDIR /app
COPY list .
RUN mkdir -p modules/large && dd if=/dev/zero of=modules/large/a bs=1M count=9 && sleep 3 && echo 812 packages
FROM base:1 AS api
COPY api .
RUN dd if=/dev/zero of=/server bs=1M count=2
FROM base:1
COPY --from=deps /app /app
COPY --from=api /server /server
`;
  writeFiles(context, { Dockerfile: dockerfile, list: "1", api: "1" });
  await bough(["build", "--docker", context]);
  writeFiles(context, { list: "2", api: "2" });
  await using opened = await browser.open(await buildPage(context));
  const { page, noticed } = opened;

  const figure = page.getByRole("listitem").filter({ hasText: "Slowest on the critical path" });
  expect(await figure.innerText()).toContain("RUN mkdir -p modules/large");
  await figure.getByRole("link", { name: "step 4" }).click();
  expect(await page.locator("#s4").innerText()).toMatch(/812 packages$/);

  expect(await detailsOf(page, 7)).toMatch(
    /it builds on step 6, which was made again: api .* has changed: sha256 \w+ -> \w+/,
  );
  await page.locator("#s7 dd").getByRole("link", { name: "step 6" }).first().click();
  await page.locator("#s6[open]").waitFor();

  const image = page.getByRole("listitem").filter({ hasText: "of it in /" });
  expect(await image.getByRole("link").innerText()).toMatch(/^\d\d% of it in \/app\/modules\/large$/);
  const changes = page.getByRole("region", { name: "What changed since the build before" });
  expect(await changes.innerText()).toMatch(/ in \d+\.\d s: this one took \d+\.\d+ s (less|more)\./);
  expect(noticed).toEqual([]);
});

test("a failed build: its error and the end of what the failed step has printed are at the top", async () => {
  const context = temporaryDirectory();
  writeFiles(context, {
    Dockerfile: "FROM base:1\nRUN echo fine\nRUN (seq 40; echo main.c:12: no such thing) >&2; exit 3\n",
  });
  await using opened = await browser.open(await buildPage(context));
  const { page, noticed } = opened;
  const failure = page.getByRole("region", { name: "What went wrong" });
  const text = await failure.innerText();
  expect(text).toContain("40\nmain.c:12: no such thing\n");
  expect(text).toContain("Dockerfile:3: the command failed with exit code 3");
  const box = await failure.boundingBox();
  expect((box?.y ?? 0) + (box?.height ?? Number.NaN)).toBeLessThan(800);
  await failure.getByRole("link", { name: "Step 3" }).click();
  expect(await page.locator("#s3[open]").innerText()).toContain("1\n2\n3\n");
  expect(await page.title()).toContain(": failed");
  expect(noticed).toEqual([]);
});

test("an interrupted build: the step that was stopped, with what it had printed", async () => {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM base:1\nRUN echo begun; sleep 60\nRUN true\n" });
  const stopping = new AbortController();
  const html = await buildPage(context, ["--progress", "plain"], {
    signal: stopping.signal,
    onStderr: (text) =>
      text.includes("begun\n") && stopping.abort(new BoughError("interrupted", { kind: "interrupted" })),
  });
  await using opened = await browser.open(html);
  const { page, noticed } = opened;
  expect(await page.getByRole("region", { name: "It did not end" }).innerText()).toContain("interrupted");
  expect(await detailsOf(page, 2)).toMatch(/stopped critical[\s\S]*begun$/);
  expect(await page.locator("#s3").count()).toBe(0);
  expect(noticed).toEqual([]);
});

test("what a build prints, and what it is called, is shown and never run, and asks nothing from anywhere", async () => {
  const requests: string[] = [];
  using server = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    fetch({ url }) {
      requests.push(url);
      return new Response();
    },
  });
  const evil = `</pre></style></script><script src=${server.url}s.js></script><img src=${server.url}i.png onerror=alert(1)><a href=javascript:alert(2)>x</a>`;
  const context = temporaryDirectory();
  writeFiles(context, {
    Dockerfile: `FROM base:1\nARG TEXT\nRUN cat <<'E'\n${evil}\n\u202Eabc\u0007\nE\nRUN echo "<b>" '${evil}'; exit 1\n`,
  });
  const html = await buildPage(context, ["--build-arg", `TEXT=${evil}`]);
  await using opened = await browser.open(html);
  const { page, noticed } = opened;
  expect(await detailsOf(page, 3)).toContain(`${evil}\n\\u202eabc`);
  const failure = await page.getByRole("region", { name: "What went wrong" }).innerText();
  expect(failure).toContain(`<b> ${evil}`);
  expect(await page.getByRole("cell", { name: evil, exact: true }).innerText()).toBe(evil);
  expect(await page.locator("img, iframe, [onerror], [href^=javascript], script[src]").count()).toBe(0);
  expect({ noticed, requests }).toEqual({ noticed: [], requests: [] });
});
