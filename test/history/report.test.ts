/** The page about a build: what it says, that it needs nothing else, and that no text of a build gets into it as HTML. */
import { describe, expect, test } from "bun:test";
import type { BuildStep } from "../../src/history/build-record.ts";
import { renderBuildReport } from "../../src/history/report/report.ts";
import { directorySizes, type ImageSizes } from "../../src/history/report/report-data.ts";
import { squarify } from "../../src/history/report/squarify.ts";
import { originOf, recordOf, stepOf } from "./builds.ts";
import { manySteps } from "./example-builds.ts";
import { hostileBuild } from "./hostile-build.ts";

type Data = Parameters<typeof renderBuildReport>[0];

const page = (given: Partial<Data>) =>
  renderBuildReport({
    record: recordOf("b1"),
    outputs: new Map(),
    earlier: undefined,
    sizes: undefined,
    ...given,
  });

interface Found {
  tags: Map<string, number>;
  attributes: [tag: string, name: string, value: string][];
  /** The text of elements with the attribute data-test, or of those that the selector names. */
  texts: string[];
}

/** Parses a page as a browser does, and collects its elements. */
function parse(html: string, selector = "title"): Found {
  const found: Found = { tags: new Map(), attributes: [], texts: [] };
  const texts: string[] = [];
  new HTMLRewriter()
    .on("*", {
      element({ tagName, attributes }) {
        found.tags.set(tagName, (found.tags.get(tagName) ?? 0) + 1);
        for (const [name = "", value = ""] of attributes) found.attributes.push([tagName, name, value]);
      },
    })
    .on(selector, {
      element: () => void texts.push(""),
      text: ({ text }) => void texts.push((texts.pop() ?? "") + text),
    })
    .transform(html);
  const named: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"', "#39": "'", "#96": "`" };
  found.texts = texts.map((text) => text.replace(/&(#?\w+);/g, (whole, name) => named[name] ?? whole).trim());
  return found;
}

const inStage = (index: number, name: string | null): Partial<BuildStep> => ({
  stage: { index, name },
  inStage: { step: 1, steps: 3 },
});

const built = recordOf(
  "b1",
  [
    stepOf(1, "FROM node AS deps", { ...inStage(0, "deps"), start: 0, end: 20, outcome: "cached" }),
    stepOf(2, "RUN npm ci", {
      ...{
        ...inStage(0, "deps"),
        start: 20,
        end: 9000,
        output: { length: 20, kept: 20 },
        addedBytes: 5_000_000,
      },
      reason: { reason: "ENV", name: "VERSION", before: { text: "1" }, now: { text: "2" } },
    }),
    stepOf(3, "FROM node", { ...inStage(1, null), start: 0, end: 20, outcome: "cached" }),
    stepOf(4, "COPY --from=deps /a /a", {
      ...{ ...inStage(1, null), start: 9000, end: 9500, needs: [0], layer: "layer:bb" },
      reason: { reason: "source", from: "deps", path: "/a" },
    }),
    stepOf(5, "RUN test", {
      ...{ ...inStage(1, null), start: 9500, end: 9900 },
      reason: { reason: "parent", before: "aa", now: "bb", title: "COPY --from=deps /a /a" },
    }),
  ],
  {
    seconds: 10,
    origin: originOf("shop", {
      buildArgs: [
        { name: "A", value: "x" },
        { name: "TOKEN", value: null },
      ],
    }),
  },
);

const sizes: ImageSizes = {
  ...{ bytes: 110_000_000, hiddenBytes: 9_000_000 },
  layers: [
    { instruction: "", isBase: true, bytes: 30_000_000, hiddenBytes: 0 },
    { instruction: "RUN npm ci", isBase: false, bytes: 80_000_000, hiddenBytes: 9_000_000 },
  ],
  root: directorySizes([
    { path: "/app/node_modules/next/a.js", bytes: 70_000_000, layer: 1 },
    { path: "/app/node_modules/b.js", bytes: 10_000_000, layer: 1 },
    { path: "/usr/bin/node", bytes: 30_000_000, layer: 0 },
    { path: "/etc/tiny", bytes: 10, layer: 0 },
  ]),
};

describe("what a stranger looks for is there, also without JavaScript:", () => {
  const html = page({ record: built, outputs: new Map([[2, "added 812 packages\n"]]), sizes });

  test("the slowest step of the critical path, first among the figures", () => {
    expect(parse(html, ".figures li:nth-child(2) .value").texts).toEqual(["step 2"]);
    expect(parse(html, ".figures li:nth-child(2) .more").texts).toEqual([
      "RUN npm ci 9.0 s, 90% of the time",
    ]);
  });

  test("the causes of misses, with the steps that only followed", () => {
    expect(parse(html, ".misses td").texts.filter((_, at) => at % 3 === 2)).toEqual([
      'ENV VERSION has changed: "1" -> "2"',
      "/a in --from=deps has changedand so step 5, which builds on it",
    ]);
  });

  test("the directory that makes the image large, and what layers waste", () => {
    expect(parse(html, ".tree > li > details > summary").texts[0]).toBe("/app/80 MB73%");
    expect(parse(html, ".tree summary code").texts).toContain("/app/node_modules/");
    expect(html).toContain("9.0 MB are wasted");
    expect(html).not.toContain("tiny");
  });

  test("each step with its time, outcome and output", () => {
    expect(parse(html, "details.s .o").texts).toEqual([
      "cached",
      "built critical",
      "cached",
      "built critical",
      "built critical",
    ]);
    expect(parse(html, "#s2 pre").texts).toEqual(["added 812 packages"]);
    expect(parse(html, "#s4 dd").texts).toContain("step 2, until 9.0 s");
  });

  test("what it was made from, without secrets", () => {
    expect(parse(html, ".inputs td").texts).toEqual(["A", "x", "TOKEN", "secret, not recorded"]);
  });

  test("the error of a failed step, and the end of its output", () => {
    const failed = recordOf(
      "f",
      [stepOf(1, "RUN make", { outcome: "failed", output: { length: 9, kept: 9 } })],
      {
        ...{ status: "failed", error: { message: "Dockerfile:2: exit code 3", hint: "Look." } },
      },
    );
    const shown = page({ record: failed, outputs: new Map([[1, "before\nboom\n"]]) });
    expect(parse(shown, ".failure pre").texts).toEqual([
      "before\nboom",
      "Dockerfile:2: exit code 3",
      "Look.",
    ]);
    expect(parse(shown, ".failure a").texts).toEqual(["Step 1"]);
    expect(parse(shown).texts[0]).toBe("app: failed · bough build report");
  });

  test("what has changed since the build before", () => {
    const earlier = recordOf(
      "b0",
      built.steps.map((step) => (step.step === 2 ? { ...step, end: 100 } : step)),
      { seconds: 1 },
    );
    const shown = page({ record: built, earlier });
    expect(parse(shown, ".changes tbody tr").texts[0]).toContain("RUN npm ci");
    expect(parse(shown, ".changes td.num").texts).toEqual(["0.08 s", "9.0 s", "+8.9 s"]);
  });

  test("a layer whose size alone has changed is named, too", () => {
    const sized = (addedBytes: number) =>
      recordOf("b", [stepOf(1, "RUN make"), stepOf(2, "COPY a b", { addedBytes })]);
    const shown = page({ record: sized(5_000_000), earlier: sized(2_000_000) });
    expect(parse(shown, ".changes tbody td:nth-child(2)").texts).toEqual(["COPY a b+3.0 MB"]);
  });
});

test("states are told apart by form and by words: each has a sign, a pattern and a name", () => {
  const steps = (["made", "cached", "failed", "stopped", "done"] as const).map((outcome, at) =>
    stepOf(at + 1, "RUN x", { outcome, start: at * 10, end: at * 10 + 10 }),
  );
  const html = page({ record: recordOf("b", steps) });
  expect(parse(html, "details.s .o").texts.map((text) => text.replace(" critical", ""))).toEqual([
    ...["built", "cached", "failed", "stopped", "no layer"],
  ]);
  expect(parse(html, ".legend li").texts).toEqual([
    ...["built: filled", "cached: hollow", "failed: crossed", "stopped: striped", "waited: dotted"],
    "critical path: framed",
  ]);
});

describe("the page is one file that asks for nothing", () => {
  const html = page({ record: built, sizes });
  const { attributes, tags } = parse(html);

  test("its policy allows only its own style and script, which are in it", () => {
    const policy = attributes.find(
      ([, name, value]) => name === "content" && value.startsWith("default-src"),
    )?.[2];
    const hash = (text: string | undefined) =>
      `'sha256-${new Bun.CryptoHasher("sha256").update(text ?? "").digest("base64")}'`;
    const [, style] = /<style>(.*?)<\/style>/s.exec(html) ?? [];
    const [, script] = /<script>(.*?)<\/script>/s.exec(html) ?? [];
    expect(policy).toBe(
      `default-src 'none'; style-src ${hash(style)}; script-src ${hash(script)}; base-uri 'none'; form-action 'none'`,
    );
    expect([tags.get("style"), tags.get("script")]).toEqual([1, 1]);
  });

  test("no attribute leads elsewhere, is a script, or has a style", () => {
    for (const [tag, name, value] of attributes) {
      expect(`${tag} ${name}`).not.toMatch(/ (on\w*|style|src|srcset|action|formaction)$/);
      if (name === "href") expect(value).toMatch(/^#\w+$/);
    }
    expect(html).not.toMatch(/url\((?!#)|@import|https?:/);
  });

  test("its script opens steps by their link, and never makes HTML of text", () => {
    expect(html).not.toMatch(/innerHTML|outerHTML|insertAdjacent|document\.write|eval\(/);
  });
});

describe("hostile text is shown, never run", () => {
  const text = `"'>\`\${x}&lt;\u202e\u0000\u001b[31m`;
  const html = page(hostileBuild(text));

  test("no element and no attribute comes from it", () => {
    const { tags, attributes } = parse(html);
    expect([tags.get("script"), tags.get("img"), tags.get("main")]).toEqual([1, undefined, 1]);
    expect(attributes.filter(([, name]) => name.startsWith("on") || name === "src")).toEqual([]);
  });

  test("it is shown as it is, with what can't be seen by its code", () => {
    const [title] = parse(html, "h1").texts;
    expect(title).toBe(
      `"'>\`\${x}&lt;\\u202e\\x00\\x1b[31m<img src=x onerror=alert(1)><script src=x></script>`,
    );
    expect(html).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
  });
});

test("of 500 steps with much output, the page stays below 500 kB, and has the output of a failed step", () => {
  const html = page(manySteps());
  expect(Buffer.byteLength(html)).toBeLessThan(500_000);
  expect(parse(html, "#s500 pre").texts[0]).toEndWith("<output> & of 500");
  expect(parse(html, "details.s .n").texts).toHaveLength(500);
  expect(parse(html, "#s500 .cut code").texts).toEqual(["bough history logs b500 500"]);
  expect(parse(html, "#s7 .cut").texts).toEqual(["Its output: bough history logs b500 7"]);
});

test("the same data make the same page", () => {
  expect(page({ record: built, sizes })).toBe(page({ record: built, sizes }));
});

test("output is shown as a terminal would show it in the end", () => {
  const record = recordOf("b", [stepOf(1, "RUN x", { output: { length: 50, kept: 50 } })]);
  const html = page({
    record,
    outputs: new Map([[1, "\u001b[32mgreen\u001b[0m\n1%\r50%\r100%\n\tindented\n"]]),
  });
  expect(parse(html, "#s1 pre").texts).toEqual(["green\n100%\n        indented"]);
});

test("a rectangle is divided by bytes, without gaps and overlaps", () => {
  const placed = squarify(
    [60, 60, 40, 30, 20, 20, 10].map((bytes) => ({ bytes })),
    { x: 0, y: 0, width: 60, height: 40 },
  );
  for (const { item, area } of placed) expect(area.width * area.height).toBeCloseTo(item.bytes * 10);
  expect(placed.every(({ area }) => area.x >= 0 && area.x + area.width <= 60.001)).toBe(true);
  expect(
    Math.max(...placed.map(({ area }) => Math.max(area.width / area.height, area.height / area.width))),
  ).toBeLessThan(3);
});
