/**
 * Stages of a random Dockerfile. Until the Dockerfile is written, a reference to another stage is `@` and a number from 0 to 1: a
 * fraction of the stages before it and the base image. So it is valid wherever an edit moves it.
 */
import { pick, type Random } from "./pick.ts";

/** Returns two more stages, each with copies from earlier ones. */
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

/** Returns the name or number of a stage before the one with this index, or the base image. */
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
