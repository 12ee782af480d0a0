/**
 * Stages of a random Dockerfile. A reference to another stage is `@` and a number from 0 to 1 until it is written: a part of
 * the stages before it and of the base image, so that it means something wherever an edit moves it.
 */
import { pick, type Random } from "./pick.ts";

/** Two more stages, each with something of those before it. */
export function startStages(instruction: () => string, random: Random): string[] {
  return [1, 2].flatMap(() => [
    `FROM ${reference(random)}`,
    instruction(),
    copy(random),
    instruction(),
    copy(random),
  ]);
}

export function stageInstruction(random: Random): string {
  return random() < 0.3 ? `FROM ${reference(random)}` : copy(random);
}

export function nameStages(lines: readonly string[]): string[] {
  let index = 0;
  const named = lines.map((line) => {
    if (!line.startsWith("FROM")) return line.replace(/@(\S+)/, (_, part) => spell(Number(part), index));
    const base = line.replace(/@(\S+)/, (_, part) => spell(Number(part), index + 1, "name"));
    return `${base} AS Stage${++index}`;
  });
  return ["ARG IMAGE=busybox:1", "FROM $IMAGE AS stage0", ...named];
}

export function optionsOf(lines: readonly string[], target: number | undefined): string[] {
  const stages = 1 + lines.filter((line) => line.startsWith("FROM")).length;
  const options = ["--docker", "--jobs", "3"];
  return target === undefined ? options : [...options, "--target", `STAGE${Math.floor(target * stages)}`];
}

/** A stage before the one with this index, by its name or its number, or the image. */
function spell(part: number, index: number, by = part.toFixed(3).at(-1) ?? ""): string {
  const chosen = Math.floor(part * (index + 0.5));
  if (chosen === index) return "busybox:1";
  return by === "name" || "02468".includes(by) ? `stage${chosen}` : String(chosen);
}

function copy(random: Random): string {
  const flags = pick(random, [
    "",
    "",
    "",
    "",
    "--chown=1:2 ",
    "--chown=daemon ",
    "--chmod=640 ",
    "--chmod=u+x,g-r ",
    "--parents ",
    "--exclude=*.txt ",
  ]);
  const source = pick(random, [
    "/data",
    "/data*",
    "/data*/*.txt",
    "/tmp",
    "/tmp/",
    "/tmp/* /etc/passwd",
    "/etc/copied* /w* /etc/group",
    "etc/../tmp/out*",
    "/data*/",
  ]);
  return `COPY --from=${reference(random)} ${flags}${source} ${pick(random, ["/data/", "/copied/", "./", "/w/own/", "/$A/", "/link/"])}`;
}

function reference(random: Random): string {
  return `@${random().toFixed(3)}`;
}
