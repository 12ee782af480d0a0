import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BoughError, usageError } from "../../errors.ts";
import { homeDirectory } from "../../home-directory.ts";
import { reasonOf } from "../../system-error.ts";
import { version } from "../../version.ts";
import { manual } from "../about/agent-manual.ts";
import { command, type Invocation } from "../command-line/command.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { printResult } from "../command-line/result.ts";
import type { Runtime } from "../process/runtime.ts";

// Installs the skill: a short form of the manual for coding agents, in the directory where an agent looks for skills.

/** The directories in which agents look for a user's skills, below the home directory. */
const skillDirectories = {
  claude: ".claude/skills",
  codex: ".codex/skills",
  opencode: ".config/opencode/skills",
  cline: ".cline/skills",
  amp: ".config/agents/skills",
} as const;

/** The directories that show that an agent is installed, for agents where that is not the parent of the directory of skills. */
const agentDirectories: Partial<Record<keyof typeof skillDirectories, string>> = { amp: ".config/amp" };

type Agent = keyof typeof skillDirectories;
const agents = Object.keys(skillDirectories) as Agent[];

/**
 * The file of the skill for one agent. `version`: the version of bough that wrote it; `undefined` if the file does not exist, and
 * `"foreign"` if another program wrote it.
 */
interface SkillFile {
  agent: Agent;
  path: string;
  version: string | undefined;
}

/** The number of the manual's sections in the skill, from which an agent can ask for the rest. */
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

function findSkill(agent: Agent, { environment }: Pick<Runtime, "environment">): SkillFile {
  const path = join(homeDirectory(environment), skillDirectories[agent], "bough", "SKILL.md");
  if (!existsSync(path)) return { agent, path, version: undefined };
  const text = withFileError(path, () => readFileSync(path, "utf8"));
  return { agent, path, version: /^ {2}bough-version: "([^"]*)"$/m.exec(text)?.[1] ?? "foreign" };
}

/** Returns the agents that the words name; without words, the installed ones. */
function chooseAgents(given: readonly string[], runtime: Pick<Runtime, "environment">): Agent[] {
  const unknown = given.find((name) => !agents.some((agent) => agent === name));
  if (unknown !== undefined)
    throw usageError(`unknown agent ${JSON.stringify(unknown)}`, `There are ${agents.join(", ")}.`);
  const isMeant = (agent: Agent) =>
    given.length > 0
      ? given.includes(agent)
      : existsSync(
          join(
            homeDirectory(runtime.environment),
            agentDirectories[agent] ?? dirname(skillDirectories[agent]),
          ),
        );
  const chosen = agents.filter(isMeant);
  if (chosen.length > 0) return chosen;
  throw usageError(
    "no coding agent has a directory here",
    `Name one: bough skill install ${agents.join("|")}`,
  );
}

function writeSkill(skill: SkillFile): SkillFile {
  refuseForeign(skill);
  withFileError(skill.path, () => {
    mkdirSync(dirname(skill.path), { recursive: true });
    writeFileSync(skill.path, skillText());
  });
  return { ...skill, version };
}

function removeSkill(skill: SkillFile): void {
  refuseForeign(skill);
  withFileError(skill.path, () => rmSync(dirname(skill.path), { recursive: true }));
}

function refuseForeign({ path, version: found }: SkillFile): void {
  if (found !== "foreign") return;
  throw new BoughError(`${path} was not written by bough`, { hint: "Move it away first." });
}

function withFileError<Result>(path: string, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    throw new BoughError(`cannot change ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

const args: ArgumentDefinitions = {
  agent: {
    type: "positional",
    required: false,
    multiple: true,
    completes: agents,
    description: `${agents.join(", ")} (default: those that have a directory here)`,
  },
};

export const install = command({
  name: "install",
  description: "Write the short form of the manual where a coding agent looks for skills.",
  args,
  run(invocation) {
    const { values, runtime } = invocation;
    const chosen = chooseAgents(values.positionals, runtime);
    print(
      invocation,
      chosen.map((agent) => writeSkill(findSkill(agent, runtime))),
    );
  },
  examples: [
    ["skill install claude", "in ~/.claude/skills/bough"],
    ["skill install", "for each agent that has a directory in your home directory"],
  ],
  agentNote: "This command writes below the home directory. `bough agent` prints the whole manual.",
});

export const list = command({
  name: "list",
  description: "List the agents, and which have the skill, of which version.",
  run: (invocation) =>
    print(
      invocation,
      agents.map((agent) => findSkill(agent, invocation.runtime)),
    ),
  examples: [
    ["skill list", "where it is, and where it would be"],
    ["skill list -f json", "as JSON, for other programs"],
  ],
  agentNote: "No file is changed.",
});

export const upgrade = command({
  name: "upgrade",
  description: "Write the skill again wherever it is installed, as this version of bough has it.",
  run(invocation) {
    const skills = installed(invocation).filter((skill) => skill.version !== "foreign");
    print(invocation, skills.map(writeSkill));
  },
  examples: [
    ["skill upgrade", "after bough itself was upgraded"],
    ["skill upgrade -q", "print only the paths"],
  ],
  agentNote: "This command writes below the home directory.",
});

export const remove = command({
  name: "remove",
  description: "Remove the skill.",
  args,
  run(invocation) {
    const { values, runtime } = invocation;
    const given = values.positionals;
    const chosen = given.length === 0 ? undefined : chooseAgents(given, runtime);
    const skills = installed(invocation).filter(({ agent }) => chosen?.includes(agent) ?? true);
    if (skills.length === 0)
      throw new BoughError("the skill is not installed", {
        hint: "`bough skill list` shows where it may be.",
      });
    for (const skill of skills) removeSkill(skill);
    print(invocation, skills);
  },
  examples: [
    ["skill remove", "wherever it is installed"],
    ["skill remove codex", "of one agent"],
  ],
  agentNote: "This command removes only what `bough skill install` has written.",
});

function installed({ runtime }: Invocation): SkillFile[] {
  return agents.map((agent) => findSkill(agent, runtime)).filter((skill) => skill.version !== undefined);
}

function print(invocation: Invocation, skills: readonly SkillFile[]): void {
  const stateOf = (skill: SkillFile) => {
    if (skill.version === undefined) return "-";
    return skill.version === "foreign" ? "not bough's" : skill.version;
  };
  printResult(invocation, {
    id: skills.flatMap((skill) => (skill.version === undefined ? [] : skill.path)),
    json: skills.map(({ agent, path, version: found = null }) => ({
      agent,
      path,
      version: found,
      isCurrent: found === version,
    })),
    table: () => ({
      header: ["AGENT", "VERSION", "PATH"],
      rows: skills.map((skill) => [skill.agent, stateOf(skill), { whole: skill.path }]),
    }),
  });
}
