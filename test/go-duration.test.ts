import { expect, test } from "bun:test";
import { parseGoDuration } from "../src/go/duration.ts";

test.each<[text: string, nanoseconds: number | undefined]>([
  ["1h30m", 5.4e12],
  ["1m0.5s", 6.05e10],
  [".5s", 5e8],
  ["5.s", 5e9],
  ["1.1s", 1_100_000_000],
  ["7ms", 7e6],
  ["3us2ns", 3002],
  ["3µs", 3000],
  ["3μs", 3000],
  ["0", 0],
  ["-2m", -1.2e11],
  ["+2m", 1.2e11],
  ["", undefined],
  ["-", undefined],
  ["5", undefined],
  [".s", undefined],
  ["1d", undefined],
  ["1h 2m", undefined],
  ["1h-2m", undefined],
])("%s", (text, nanoseconds) => expect(parseGoDuration(text)).toBe(nanoseconds));
