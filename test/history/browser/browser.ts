/** A headless Chromium that opens pages about builds, and notices whatever they must not do. */
import { afterAll } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { temporaryDirectory } from "../../support/bough.ts";

export interface OpenedPage extends AsyncDisposable {
  page: Page;
  /** Requests for anything but the page, messages on the console, errors of scripts, and dialogs. */
  noticed: readonly string[];
}

export interface TestBrowser {
  /** The version, such as `156.0.8078.108`. */
  version: string;
  /** Opens a page as a file, as that of a pipeline is opened. */
  open(html: string, options?: BrowserContextOptions): Promise<OpenedPage>;
}

/** Starts a browser, which ends with the test file. */
export async function startBrowser(): Promise<TestBrowser> {
  const browser = await chromium.launch({
    executablePath: Bun.which("chromium-headless-shell") ?? "/usr/bin/chromium",
    args: ["--font-render-hinting=none", "--disable-lcd-text"],
    env: { ...process.env, FONTCONFIG_FILE: writeFontSettings() },
  });
  afterAll(() => browser.close());
  return {
    version: browser.version(),
    async open(html, options = {}) {
      const file = join(temporaryDirectory(), "build.html");
      writeFileSync(file, html);
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
      const page = await context.newPage();
      const noticed: string[] = [];
      context.on("request", (request) => {
        if (request.url() !== `file://${file}`) noticed.push(`request: ${request.url()}`);
      });
      context.on("page", (other) => noticed.push(`window: ${other.url()}`));
      page.on("console", (message) => noticed.push(`console: ${message.text()}`));
      page.on("pageerror", (error) => noticed.push(`error: ${error.message}`));
      page.on("dialog", (dialog) => {
        noticed.push(`dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
      await page.goto(`file://${file}`);
      return { page, noticed, [Symbol.asyncDispose]: () => context.close() };
    },
  };
}

/** Four fonts and none of the machine's settings, so that a page looks the same on each machine. */
function writeFontSettings(): string {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, "fonts"));
  for (const font of ["Sans", "Sans-Bold", "SansMono", "SansMono-Bold"])
    symlinkSync(
      `/usr/share/fonts/truetype/dejavu/DejaVu${font}.ttf`,
      join(directory, "fonts", `${font}.ttf`),
    );
  const file = join(directory, "fonts.conf");
  const alias = (family: string, font: string) =>
    `<match><test name="family"><string>${family}</string></test><edit name="family" mode="assign" binding="strong"><string>${font}</string></edit></match>`;
  writeFileSync(
    file,
    `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<dir>${directory}/fonts</dir><cachedir>${directory}/cache</cachedir>
${alias("system-ui", "DejaVu Sans")}${alias("sans-serif", "DejaVu Sans")}${alias("monospace", "DejaVu Sans Mono")}
<match target="font"><edit name="antialias" mode="assign"><bool>true</bool></edit><edit name="hinting" mode="assign"><bool>false</bool></edit><edit name="rgba" mode="assign"><const>none</const></edit></match>
</fontconfig>
`,
  );
  return file;
}
