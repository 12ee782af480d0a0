/**
 * Pictures of the page about a build, at two widths in both themes, which people have looked at. They are kept at half the size, and
 * compared at a quarter of it, where another version of the browser draws the same. `UPDATE_GOLDEN=1` makes them anew.
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { renderBuildReport } from "../../../src/history/report/report.ts";
import { failed, shop } from "../example-builds.ts";
import { startBrowser } from "./browser.ts";

const browser = await startBrowser();
const pages = { shop: renderBuildReport(shop), failed: renderBuildReport(failed) };

/** The share of a picture that may differ: what is lost of it where it is kept. */
const tolerance = 0.0002;

test.each([
  { name: "shop", width: 1280, colorScheme: "light" },
  { name: "shop", width: 1280, colorScheme: "dark" },
  { name: "shop", width: 400, colorScheme: "light" },
  { name: "shop", width: 400, colorScheme: "dark" },
  { name: "failed", width: 1280, colorScheme: "light" },
] as const)("$name, $width pixels, $colorScheme", async ({ name, width, colorScheme }) => {
  await using opened = await browser.open(pages[name], { viewport: { width, height: 800 }, colorScheme });
  await opened.page.evaluate("document.getElementById('s4').open = true");
  const actual = await takePicture(opened.page);
  const golden = join(import.meta.dir, `${name}-${width}-${colorScheme}.webp`);
  if (process.env.UPDATE_GOLDEN === "1") writeFileSync(golden, await halve(actual));
  if (!existsSync(golden)) throw new Error(`there is no ${golden}: UPDATE_GOLDEN=1 makes it`);
  const share = await differenceOf(actual, readFileSync(golden));
  expect(share, `the page no longer looks like ${golden}, in ${share * 100}% of it`).toBeLessThan(tolerance);
});

test.each([
  ["a bar of the time line is gone", "document.querySelectorAll('svg.lines rect.made')[3].remove()"],
  ["a color is another one", "document.documentElement.style.setProperty('--made', '#2f855a')"],
  ["a row is gone", "document.getElementById('s9').remove()"],
  [
    "a column is elsewhere",
    "for (const each of document.querySelectorAll('.o')) each.style.translate = '-40px'",
  ],
])("it would be noticed if %s", async (_, change) => {
  await using opened = await browser.open(pages.shop);
  await opened.page.evaluate("document.getElementById('s4').open = true");
  await opened.page.evaluate(change);
  const actual = await takePicture(opened.page);
  const golden = readFileSync(join(import.meta.dir, "shop-1280-light.webp"));
  expect(await differenceOf(actual, golden)).toBeGreaterThan(tolerance * 1.5);
});

test("the picture in the README is how the page begins", async () => {
  await using opened = await browser.open(pages.shop, { viewport: { width: 1080, height: 560 } });
  const actual = await takePicture(opened.page, { fullPage: false });
  const golden = join(import.meta.dir, "../../../scripts/manual/build-report.png");
  if (process.env.UPDATE_GOLDEN === "1") writeFileSync(golden, actual);
  expect(await differenceOf(actual, readFileSync(golden), 0.25)).toBeLessThan(tolerance);
});

/** Chromium 150 now and then says that it can't take a picture, and can right after that. */
async function takePicture(page: Page, { fullPage = true, attempts = 5 } = {}): Promise<Uint8Array> {
  try {
    return await page.screenshot({ fullPage, animations: "disabled" });
  } catch (error) {
    if (attempts === 1) throw error;
    return await takePicture(page, { fullPage, attempts: attempts - 1 });
  }
}

const pictures = await browser.open("<!DOCTYPE html><title>pictures</title>");

async function halve(picture: Uint8Array): Promise<Uint8Array> {
  const encoded = await pictures.page.evaluate<string>(`(async () => {
    ${drawing}
    const { canvas } = await draw("${toUrl(picture)}", 0.5);
    const blob = await canvas.convertToBlob({ type: "image/webp", quality: 0.5 });
    return new Uint8Array(await blob.arrayBuffer()).toBase64();
  })()`);
  return Buffer.from(encoded, "base64");
}

/** Returns the share of the pixels that differ visibly, at a quarter of the size, to which `scale` brings the golden one. Of pictures with another size, 1. */
async function differenceOf(actual: Uint8Array, golden: Uint8Array, scale = 0.5): Promise<number> {
  return await pictures.page.evaluate<number>(`(async () => {
    ${drawing}
    const one = shrink((await draw("${toUrl(actual)}", 0.5)).canvas, 0.5);
    const other = await draw("${toUrl(golden)}", ${scale});
    if (Math.abs(one.canvas.height - other.canvas.height) > 1 || Math.abs(one.canvas.width - other.canvas.width) > 1) return 1;
    const height = Math.min(one.canvas.height, other.canvas.height), width = Math.min(one.canvas.width, other.canvas.width);
    const [left, right] = [one, other].map(({ context }) => context.getImageData(0, 0, width, height).data);
    let count = 0;
    for (let at = 0; at < left.length; at += 4)
      if ([0, 1, 2].some((channel) => Math.abs(left[at + channel] - right[at + channel]) > 40)) count++;
    return count / (width * height);
  })()`);
}

function toUrl(picture: Uint8Array): string {
  return `data:image/${picture[0] === 0x52 ? "webp" : "png"};base64,${Buffer.from(picture).toString("base64")}`;
}

const drawing = `
  const shrink = (image, scale) => {
    const canvas = new OffscreenCanvas(Math.ceil(image.width * scale), Math.ceil(image.height * scale));
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, image.width * scale, image.height * scale);
    return { canvas, context };
  };
  const draw = async (url, scale) => {
    const response = await fetch(url);
    return shrink(await createImageBitmap(await response.blob()), scale);
  };`;
