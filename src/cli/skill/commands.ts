import { BoughError } from "../../errors.ts";
import { version } from "../../version.ts";
import { command, type Invocation } from "../command-line/command.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { printResult } from "../command-line/result.ts";
import { agents, chooseAgents, findSkill, removeSkill, type SkillFile, writeSkill } from "./skill-file.ts";

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
