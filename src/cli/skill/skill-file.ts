/** The skill: the short form of the manual for coding agents, as a file where an agent looks for such files. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BoughError, usageError } from "../../errors.ts";
import { homeDirectory } from "../../home-directory.ts";
import { reasonOf } from "../../system-error.ts";
import { version } from "../../version.ts";
import { manual } from "../about/agent-manual.ts";
import type { Runtime } from "../process/runtime.ts";

/** The directories in which agents look for a user's skills, below the home directory. */
const directories = {
  claude: ".claude/skills",
  codex: ".codex/skills",
  opencode: ".config/opencode/skills",
  cline: ".cline/skills",
  amp: ".config/agents/skills",
} as const;

/** The directory that shows that an agent is at home here, if it is not the one above its skills. */
const ownDirectories: Partial<Record<keyof typeof directories, string>> = { amp: ".config/amp" };

export type Agent = keyof typeof directories;
export const agents = Object.keys(directories) as Agent[];

/** A skill's file of one agent. `version`: of the bough that wrote it; `undefined` if there is none, `"foreign"` if another wrote it. */
export interface SkillFile {
  agent: Agent;
  path: string;
  version: string | undefined;
}

/** The sections of the manual that an agent needs before it asks for the rest. */
const shortSections = 4;

function skillText(): string {
  const sections = manual.split(/^(?=## )/m).slice(1, shortSections);
  return `---
name: bough
description: Build container images from Dockerfiles, and run commands in them, with the bough command line. Use it to build, debug and push images without a docker daemon.
metadata:
  bough-version: ${JSON.stringify(version)}
---

# bough

\`bough agent\` prints the whole manual, \`bough COMMAND -h\` explains a command.

${sections.join("").trimEnd()}
`;
}

export function findSkill(agent: Agent, { environment }: Pick<Runtime, "environment">): SkillFile {
  const path = join(homeDirectory(environment), directories[agent], "bough", "SKILL.md");
  if (!existsSync(path)) return { agent, path, version: undefined };
  const text = reading(path, () => readFileSync(path, "utf8"));
  return { agent, path, version: /^ {2}bough-version: "([^"]*)"$/m.exec(text)?.[1] ?? "foreign" };
}

/** Returns the agents that the words name; without words, those that are at home here. */
export function chooseAgents(given: readonly string[], runtime: Pick<Runtime, "environment">): Agent[] {
  const unknown = given.find((name) => !agents.some((agent) => agent === name));
  if (unknown !== undefined)
    throw usageError(`unknown agent ${JSON.stringify(unknown)}`, `There are ${agents.join(", ")}.`);
  const isMeant = (agent: Agent) =>
    given.length > 0
      ? given.includes(agent)
      : existsSync(
          join(homeDirectory(runtime.environment), ownDirectories[agent] ?? dirname(directories[agent])),
        );
  const chosen = agents.filter(isMeant);
  if (chosen.length > 0) return chosen;
  throw usageError(
    "no coding agent has a directory here",
    `Name one: bough skill install ${agents.join("|")}`,
  );
}

export function writeSkill(skill: SkillFile): SkillFile {
  refuseForeign(skill);
  reading(skill.path, () => {
    mkdirSync(dirname(skill.path), { recursive: true });
    writeFileSync(skill.path, skillText());
  });
  return { ...skill, version };
}

export function removeSkill(skill: SkillFile): void {
  refuseForeign(skill);
  reading(skill.path, () => rmSync(dirname(skill.path), { recursive: true }));
}

function refuseForeign({ path, version: found }: SkillFile): void {
  if (found !== "foreign") return;
  throw new BoughError(`${path} was not written by bough`, { hint: "Move it away first." });
}

function reading<Result>(path: string, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    throw new BoughError(`cannot change ${path}: ${reasonOf(error)}`, { cause: error });
  }
}
