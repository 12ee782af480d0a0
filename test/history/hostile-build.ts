/** A build whose every text tries to be HTML. */
import { directorySizes, type ReportData } from "../../src/history/report/report-data.ts";
import { originOf, recordOf, stepOf } from "./builds.ts";

/** `address`: where its scripts and pictures would be. */
export function hostileBuild(text: string, address = "x"): ReportData {
  const evil = `${text}<img src=${address} onerror=alert(1)><script src=${address}></script>`;
  const step = stepOf(1, `RUN ${evil}`, {
    ...{ stage: { index: 0, name: evil }, scope: evil, outcome: "failed", output: { length: 9, kept: 9 } },
    activities: [
      { name: evil, start: 0, end: 1 },
      { name: evil, start: 1, end: 2 },
    ],
    reason: { reason: "ENV", name: evil, before: { text: evil }, now: { text: evil } },
  });
  const origin = originOf(evil, {
    ...{ context: evil, dockerfile: evil, target: evil, lock: evil, service: evil, version: evil },
    ...{ platforms: [evil], tags: [evil], buildArgs: [{ name: evil, value: evil }] },
  });
  return {
    record: recordOf(evil, [step], {
      ...{ status: "failed", error: { message: evil, hint: evil }, warnings: [{ message: evil, line: 1 }] },
      ...{ inputs: [{ kind: "url", name: evil, sha256: evil }], origin },
      result: { image: evil, platforms: [], tags: [evil], exported: [{ destination: evil, digest: evil }] },
    }),
    outputs: new Map([[1, `${evil}\n</pre></details></main><script>alert(3)</script>\n`]]),
    earlier: recordOf(evil, [stepOf(1, `COPY ${evil}`)]),
    sizes: {
      ...{ bytes: 9, hiddenBytes: 0 },
      layers: [{ instruction: evil, isBase: false, bytes: 9, hiddenBytes: 0 }],
      root: directorySizes([{ path: `/${evil.replaceAll("/", "")}/x`, bytes: 9, layer: 0 }]),
    },
  };
}
