/** How a cost grows: the same work in several sizes, as one line whose slope one can see. */
import { existsSync } from "node:fs";
import type { Row } from "./bench.ts";
import { type Command, median, run } from "./measure.ts";

interface Point {
  size: number;
  /** Processor time of the program and its children, in seconds: what else the machine does adds little to it. */
  seconds: number;
  peakBytes: number;
  /** What the home takes more on the disk after the last run. */
  diskBytes?: number | undefined;
}

interface Growth {
  /** What is counted, and of what a size is the number: `first build` of `files`. */
  name: string;
  things: string;
  points: readonly Point[];
  /** What a program takes that does only what has to be done, in seconds, for the largest size. */
  floor?: { program: string; seconds: number };
  /** The limit of the growth. Default: no worse than linear. */
  atMost?: number;
}

/** Linear, with some room for what a measurement varies by. */
const linear = 1.3;

/** Measures a point: the median of a few runs. */
export async function measurePoint(
  size: number,
  times: number,
  next: (time: number) => Promise<Command> | Command,
): Promise<Point> {
  const [seconds, peaks]: [number[], number[]] = [[], []];
  let diskBytes: number | undefined;
  for (let time = 0; time < times; time++) {
    const command = await next(time);
    const home = time === times - 1 ? command.env?.BOUGH_HOME : undefined;
    const before = home === undefined ? 0 : await sizeOnDisk(home);
    // Writes of the run before reach the disk before this one.
    Bun.spawnSync(["sync"]);
    const { processorSeconds, peakBytes } = await run(command, { watches: true });
    seconds.push(processorSeconds);
    peaks.push(peakBytes);
    if (home !== undefined) diskBytes = (await sizeOnDisk(home)) - before;
  }
  return { size, seconds: median(seconds), peakBytes: Math.max(...peaks), diskBytes };
}

/** Counts a file with several names once. */
async function sizeOnDisk(path: string): Promise<number> {
  return existsSync(path)
    ? Number.parseInt((await run({ words: ["du", "--summarize", "--block-size=1", path] })).stdout, 10)
    : 0;
}

/**
 * Returns the line of a growth. Its figure is the cost of one thing more among the most, divided by that among the fewest: 1 is
 * linear, whatever the start costs.
 */
export function growthRow({ name, things, points, floor, atMost = linear }: Growth): Row {
  const slopes = points.slice(1).map((point, index) => slopeOf(points[index] ?? point, point));
  const [first = Number.NaN] = slopes;
  const last = slopes.at(-1) ?? Number.NaN;
  const largest = points.at(-1);
  const each = slopes.map((slope) => milliseconds(slope)).join(", ");
  const taken = largest === undefined ? [] : [`${mebibytes(largest.peakBytes)} of memory`];
  if (largest?.diskBytes !== undefined) taken.push(`${mebibytes(largest.diskBytes)} of the disk`);
  return {
    case: `${name}, ${points.map(({ size }) => size.toLocaleString("en")).join(", ")} ${things}`,
    bough: [
      `${points.map(({ seconds }) => seconds.toFixed(2)).join(", ")} s of a processor`,
      `${each} ms for one more`,
      ...taken,
    ].join("; "),
    against: floor === undefined ? "" : `${floor.seconds.toFixed(2)} s, ${floor.program}`,
    // A slope that is too small to be measured does not grow.
    figure: Math.max(0, last) / Math.max(first, Number.EPSILON),
    unit: "times the first slope",
    goal: { atMost },
  };
}

/** The same for what should hardly grow: its figure is what the largest size takes more than the floor. */
export function flatRow(growth: Growth & Required<Pick<Growth, "floor" | "atMost">>): Row {
  const { points, floor, atMost } = growth;
  const figure = (points.at(-1)?.seconds ?? Number.NaN) - floor.seconds;
  return { ...growthRow(growth), figure, unit: "s more", goal: { atMost } };
}

function milliseconds(seconds: number): string {
  const figure = seconds * 1000;
  return figure < 100 ? figure.toPrecision(2) : figure.toFixed(0);
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`;
}

function slopeOf(one: Point, other: Point): number {
  return (other.seconds - one.seconds) / (other.size - one.size);
}
