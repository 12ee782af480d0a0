/** What the page about a build does in a browser: by mouse and keyboard, for a screen reader, without JavaScript, on paper. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { renderBuildReport } from "../../../src/history/report/report.ts";
import { expectGolden } from "../../support/golden.ts";
import { failed, manySteps, shop } from "../example-builds.ts";
import { startBrowser } from "./browser.ts";

const browser = await startBrowser();
const pages = {
  shop: renderBuildReport(shop),
  failed: renderBuildReport(failed),
  many: renderBuildReport(manySteps()),
};

const openSteps = (page: Page) =>
  page.evaluate<string[]>("[...document.querySelectorAll('details.s[open]')].map(({ id }) => id)");
const focused = (page: Page) =>
  page.evaluate<string>("(document.activeElement.closest('[id]') ?? document.activeElement).id");

describe("a step's details open", () => {
  test("by a click on its row, and close by another", async () => {
    await using opened = await browser.open(pages.shop);
    const { page } = opened;
    await page.getByText("RUN npm ci --no-audit --prefer-offline").last().click();
    expect(await page.locator("#s4[open]").innerText()).toMatch(
      /Not cached because\s+it builds on step 3, which was made again: package-lock.json .* has changed/,
    );
    expect(await page.locator("#s4 pre").innerText()).toContain("added 812 packages in 13s");
    await page.locator("#s4 summary").click();
    expect(await openSteps(page)).toEqual([]);
    expect(opened.noticed).toEqual([]);
  });

  test("by a click on its bar in the time line", async () => {
    await using opened = await browser.open(pages.shop);
    await opened.page.locator("svg.lines a[href='#s8'] rect").click();
    await opened.page.locator("#s8[open]").waitFor();
    expect(await focused(opened.page)).toBe("s8");
  });

  test("by keyboard: Tab reaches it, arrows go on, Enter and Space open, Escape closes", async () => {
    await using opened = await browser.open(pages.shop);
    const { page } = opened;
    const { keyboard } = page;
    for (let presses = 0; (await focused(page)) !== "s1"; presses++) {
      expect(presses).toBeLessThan(40);
      await keyboard.press("Tab");
    }
    await keyboard.press("ArrowDown");
    await keyboard.press("ArrowDown");
    await keyboard.press("ArrowDown");
    await keyboard.press("Enter");
    expect({ open: await openSteps(page), at: await focused(page) }).toEqual({ open: ["s4"], at: "s4" });
    // Into its details, and back.
    await keyboard.press("Tab");
    await keyboard.press("Escape");
    expect({ open: await openSteps(page), at: await focused(page) }).toEqual({ open: [], at: "s4" });
    await keyboard.press("ArrowUp");
    await keyboard.press("Space");
    expect({ open: await openSteps(page), at: await focused(page) }).toEqual({ open: ["s3"], at: "s3" });
    expect(opened.noticed).toEqual([]);
  });

  test("by a link to it, also from elsewhere", async () => {
    await using opened = await browser.open(pages.shop);
    await opened.page.goto(`${opened.page.url()}#s14`);
    await opened.page.locator("#s14[open]").waitFor();
    expect(await opened.page.locator("#s14 summary").boundingBox()).toMatchObject({ y: expect.any(Number) });
  });
});

test("Tab shows where it is, and begins with the way to the steps", async () => {
  await using opened = await browser.open(pages.shop);
  const { page } = opened;
  await page.keyboard.press("Tab");
  const link = page.getByRole("link", { name: "To the steps" });
  expect(await link.evaluate("document.activeElement.className")).toBe("skip");
  expect((await link.boundingBox())?.x).toBeGreaterThanOrEqual(0);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  expect(await focused(page)).toBe("find");
  expect(await page.evaluate<string>("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
});

test("steps are found by their text and output, and by what became of them", async () => {
  await using opened = await browser.open(pages.shop);
  const { page } = opened;
  const shown = () =>
    page.evaluate<string>(
      "[...document.querySelectorAll('details.s:not([hidden]) .n')].map((n) => n.textContent).join()",
    );
  const find = page.getByRole("searchbox", { name: "Find in steps and output" });
  await find.fill("812 PACKAGES");
  expect(await shown()).toBe("4");
  expect(await page.getByRole("status").innerText()).toBe("1 of 16 steps");
  await find.fill("");
  await page.getByRole("button", { name: "Critical" }).click();
  expect(await shown()).toBe("3,4,11,13,14");
  expect(await page.getByRole("button", { name: "Critical", pressed: true }).count()).toBe(1);
  // A link to a step that is not shown shows it.
  await page.getByRole("region", { name: "Why it was not cached" }).getByRole("link", { name: "8" }).click();
  await page.locator("#s8[open]").waitFor();
  await page.getByRole("button", { name: "All", exact: true }).click();
  await page.getByRole("button", { name: "Open or close all" }).click();
  expect((await openSteps(page)).length).toBe(16);
  expect(opened.noticed).toEqual([]);
});

test.each(["shop", "failed"] as const)("a screen reader gets roles and names: %s", async (name) => {
  await using opened = await browser.open(pages[name]);
  await expectGolden(
    join(import.meta.dir, `${name}.aria.txt`),
    `${await opened.page.locator("body").ariaSnapshot()}\n`,
  );
});

test("a screen reader is told that a step's row opens, and whether it has", async () => {
  await using opened = await browser.open(pages.shop);
  const session = await opened.page.context().newCDPSession(opened.page);
  const rowOf = async (text: string) => {
    const { nodes } = await session.send("Accessibility.getFullAXTree");
    const row = nodes.find(
      ({ role, name }) => role?.value === "DisclosureTriangle" && String(name?.value).includes(text),
    );
    return row?.properties?.find(({ name }) => name === "expanded")?.value.value;
  };
  expect(await rowOf("4 RUN npm ci --no-audit --prefer-offline 13.8 s built critical")).toBe(false);
  await opened.page.locator("#s4 summary").click();
  expect(await rowOf("4 RUN npm ci")).toBe(true);
});

describe("without JavaScript", () => {
  const options = { javaScriptEnabled: false };

  test("the tables, the steps and the output are there", async () => {
    await using opened = await browser.open(pages.shop, options);
    const { page } = opened;
    await page.locator("#s4 summary").click();
    expect(await page.locator("#s4 pre").innerText()).toContain("added 812 packages in 13s");
    const rows = page.getByRole("region", { name: "Why it was not cached" }).getByRole("row");
    expect(await rows.allInnerTexts()).toEqual([
      expect.stringMatching(/^Step\s+Instruction\s+Because$/),
      expect.stringMatching(
        /^3\s+COPY package.json .*has changed: sha256 .*\nand so step 4, which builds on it$/s,
      ),
      expect.stringMatching(/^8\s+RUN go build .*ARG VERSION has changed: "1.4.1" -> "1.4.2"$/s),
      expect.stringMatching(
        /^11\s+COPY --from=deps .* has changed\nand so steps 12, 13 and 14, which build on it$/s,
      ),
    ]);
    expect(await page.getByText("/app/node_modules/").first().isVisible()).toBe(true);
  });

  test("nothing is offered that needs it", async () => {
    await using opened = await browser.open(pages.shop, options);
    expect(await opened.page.getByRole("button").count()).toBe(0);
    expect(await opened.page.getByRole("searchbox").count()).toBe(0);
  });
});

describe.each(["shop", "failed", "many"] as const)("%s", (name) => {
  test.each([400, 720, 1280])(
    "at %d pixels nothing but long lines of tables scrolls sideways",
    async (width) => {
      await using opened = await browser.open(pages[name], { viewport: { width, height: 800 } });
      const { page } = opened;
      await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true");
      const wide = await page.evaluate<string[]>(`[...document.querySelectorAll("body *")]
      .filter((each) => each.checkVisibility() && !each.closest(".wide, svg, .skip, thead"))
      .filter((each) => each.getBoundingClientRect().right > innerWidth + 0.5)
      .map((each) => each.outerHTML.slice(0, 80))`);
      const scrolls = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      expect({ wide, scrolls }).toEqual({ wide: [], scrolls: 0 });
      expect(opened.noticed).toEqual([]);
    },
  );
});

test.each(["light", "dark"] as const)(
  "in the %s theme, all text has a contrast of 4.5 at least",
  async (colorScheme) => {
    for (const name of ["shop", "failed"] as const) {
      await using opened = await browser.open(pages[name], { colorScheme });
      await opened.page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true");
      expect(await opened.page.evaluate<string[]>(faintTexts)).toEqual([]);
    }
  },
);

/** Finds texts on their backgrounds; those of the map are on its boxes. */
const faintTexts = `(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color, under) => {
    canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const css = ([red, green, blue]) => "rgb(" + [red, green, blue].join() + ")";
  const backgroundOf = (element) => {
    const above = element.parentElement ? backgroundOf(element.parentElement) : "#fff";
    const shape = element.tagName === "g" ? element.querySelector(":scope > rect") : undefined;
    const style = getComputedStyle(shape ?? element);
    if (!shape) return css(rgba(style.backgroundColor, above));
    canvas.globalAlpha = Number(style.fillOpacity);
    const filled = css(rgba(style.fill, above));
    canvas.globalAlpha = 1;
    return filled;
  };
  const light = (color) => {
    const [red, green, blue] = rgba(color, "#000").map((value) =>
      value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  return [...document.querySelectorAll("main *")]
    .filter((each) => each.checkVisibility() && each.tagName !== "title")
    .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .flatMap((each) => {
      const style = getComputedStyle(each);
      const text = light(each.ownerSVGElement ? style.fill : style.color), under = light(backgroundOf(each));
      const contrast = (Math.max(text, under) + 0.05) / (Math.min(text, under) + 0.05);
      return contrast >= 4.5 ? [] : [contrast.toFixed(2) + " " + each.textContent.slice(0, 40)];
    });
})()`;

test("with the colors of whoever reads, the critical path has a frame that is seen", async () => {
  await using opened = await browser.open(pages.shop, { forcedColors: "active" });
  const colors = await opened.page.evaluate<string[]>(
    "(({ fill, stroke }) => [fill, stroke])(getComputedStyle(document.querySelector('rect.made.crit')))",
  );
  expect(new Set(colors).size).toBe(2);
  expect(colors[1]).toBe("rgb(0, 0, 0)");
});

describe("on paper", () => {
  test("steps that matter are open, and there is nothing to press", async () => {
    await using opened = await browser.open(pages.failed);
    const { page } = opened;
    expect((await page.pdf()).subarray(0, 5).toString()).toBe("%PDF-");
    expect(await openSteps(page)).toContain("s4");
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    expect(await page.getByRole("button").count()).toBe(0);
    expect(await page.evaluate<string>("getComputedStyle(document.body).backgroundColor")).toBe(
      "rgb(255, 255, 255)",
    );
    expect(await page.evaluate<string[]>(faintTexts)).toEqual([]);
  });
});

test("of 500 steps the page is drawn soon, and each opens", async () => {
  await using opened = await browser.open(pages.many);
  const { page } = opened;
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.reload();
  await page.locator("#s500").waitFor();
  const { metrics } = await session.send("Performance.getMetrics");
  const metric = (name: string) => metrics.find((each) => each.name === name)?.value ?? Number.NaN;
  // Seconds of processor. It takes a fraction of one.
  expect(metric("TaskDuration")).toBeLessThan(5);
  expect(await page.evaluate<number>("document.querySelectorAll('*').length")).toBeLessThan(500 * 25);
  await page.getByRole("searchbox").fill("module-317");
  expect(await page.getByRole("status").innerText()).toBe("1 of 500 steps");
  await page.locator("#s318 summary").click();
  expect(await page.locator("#s318").innerText()).toContain("bough history logs b500 318");
  expect(opened.noticed).toEqual([]);
});
