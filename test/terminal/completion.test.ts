/** The completions of bash, zsh and fish, at a real terminal. */
import { afterAll, beforeAll, describe, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { rowsFor } from "../support/rows.ts";
import { bash, type Terminal } from "../support/terminal.ts";
import { openBoughTerminal } from "./bough-terminal.ts";

setDefaultTimeout(120_000);

let service: FakeService;
beforeAll(async () => {
  service = await startFakeService();
  for (const tag of ["app:dev", "app:latest", "base:1", "host:5000/team/app:1"]) service.state.addImage(tag);
  service.state.tree.set("/etc", { type: "directory" });
  service.state.tree.set("/etc/motd", { type: "file", content: "welcome" });
});
afterAll(() => service.close());

const shells = {
  bash: {
    command: bash,
    setUp: "bind 'set bell-style none'; source <(bough completion bash)",
  },
  zsh: {
    command: ["zsh", "-f", "-i"],
    setUp: "unsetopt beep; autoload -U compinit; compinit -u; source <(bough completion zsh)",
  },
  fish: {
    command: [
      ...["fish", "--no-config", "--interactive"],
      ...["--init-command", "function fish_prompt; echo '$ '; end; set fish_greeting"],
    ],
    setUp: "set -g fish_autosuggestion_enabled 0; bough completion fish | source",
  },
};

const cases: [typed: string, completed: string][] = [
  ["bough sess", "bough session"],
  ["bough session che", "bough session checkout"],
  ["bough -S k session checkout tr", "bough -S k session checkout try/2"],
  ["bough session show ", "bough session show k"],
  ["bough run -S ", "bough run -S k"],
  ["bough -f js", "bough -f json"],
  ["bough help dis", "bough help disk"],
  ["bough help engine pr", "bough help engine prune"],
  ["bough build --expl", "bough build --explain"],
  ["bough build ü --label a=b --progress=com", "bough build ü --label a=b --progress=compact"],
  ["~/bin/bough bui", "~/bin/bough build"],

  ["bough use tag:app:d", "bough use tag:app:dev"],
  ["bough run --use base", "bough run --use base:1"],
  ["bough run -D app:d", "bough run -D app:dev"],
  ["bough rmi app:dev host:5000/te", "bough rmi app:dev host:5000/team/app:1"],
  ["bough rmi 'host:5000/te", "bough rmi 'host:5000/team/app:1'"],
  ["bough cat app:dev:/e", "bough cat app:dev:/etc/"],
  ["bough -S k cat /etc/m", "bough -S k cat /etc/motd"],

  ["bough build context", "bough build context-directory/"],
  ["bough build two", "bough build two\\ words/"],
  ["bough build --dockerfile=note", "bough build --dockerfile=notes.txt"],
  ["bough build --iidfile two\\ words/in", "bough build --iidfile two\\ words/inside"],
  ["bough build --iidfile=two\\ words/in", "bough build --iidfile=two\\ words/inside"],
  ["bough run app:dev cat note", "bough run app:dev cat notes.txt"],
  ["bough run -D -- cat --of=note", "bough run -D -- cat --of=notes.txt"],
  ["bough images export app:dev docker-archive:note", "bough images export app:dev docker-archive:notes.txt"],
  ["bough build -o type=oci,dest=note", "bough build -o type=oci,dest=notes.txt"],
  ["bough build context-directory --target comp", "bough build context-directory --target compile"],
  ["bough build --dockerfile=notes.txt --target=al", "bough build --dockerfile=notes.txt --target=alone"],
  [
    "bough build context-directory --no-cache-filter base,comp",
    "bough build context-directory --no-cache-filter base,compile",
  ],
  ["bough build https://host/app.git --target comp", "bough build https://host/app.git --target comp"],
  ["bough build --dockerfile - --target comp", "bough build --dockerfile - --target comp"],
  ["bough build missing --target comp", "bough build missing --target comp"],
  ["bough build --ulimit nof", "bough build --ulimit nofile="],
  ["bough run --ulimit=nof", "bough run --ulimit=nofile="],
  ["bough build --build-context a=two", "bough build --build-context a=two\\ words/"],
];

/** Cases for each shell: it gets the same words from bough as the others, but quotes, splits and replaces them itself. */
const ofEachKind: readonly string[] = [
  ...["bough sess", "bough session show ", "bough -f js", "bough build ü --label a=b --progress=com"],
  ...["~/bin/bough bui", "bough use tag:app:d", "bough rmi 'host:5000/te", "bough cat app:dev:/e"],
  ...["bough build context", "bough build two", "bough build --iidfile two\\ words/in"],
  ...["bough build --iidfile=two\\ words/in", "bough run app:dev cat note", "bough run -D -- cat --of=note"],
  ...["bough images export app:dev docker-archive:note", "bough build -o type=oci,dest=note"],
  ...["bough build context-directory --no-cache-filter base,comp", "bough build missing --target comp"],
  ...["bough build --ulimit nof", "bough build --build-context a=two"],
];

/** The cases in which shells differ: zsh drops the quotes when it replaces a word. */
const quotedCases: Record<keyof typeof shells, string> = {
  bash: 'bough run --use="app:dev"',
  zsh: "bough run --use=app:dev",
  fish: 'bough run --use="app:dev"',
};

describe.each(["bash", "zsh", "fish"] as const)("%s", (name) => {
  test("completes commands, options, names of all kinds, and files", async () => {
    const { command, setUp } = shells[name];
    const shown = await open(command);
    try {
      const begin =
        "bough -q -S k use app:dev; bough -q -S k session branch try/2; clear; printf 'set %s\\n' up";
      shown.type(`${setUp}; ${begin}`);
      // A prompt alone could be the one before: what is typed too early, a shell completes in another way.
      await shown.waitFor(/^set up\n\$$/m);
      // bash completes all of them, as root runs all rows of other tables.
      const own = rowsFor(name === "bash" ? "root" : name, cases, ofEachKind);
      for (const [typed, completed] of [...own, ['bough run --use="app:d', quotedCases[name]] as const]) {
        shown.write(typed);
        shown.press("Tab");
        await shown.waitForLastLine(`$ ${completed}`);
        shown.press("C-u");
        await shown.waitForLastLine("$");
      }
    } finally {
      shown.close();
    }
  });
});

async function open(shell: readonly string[]): Promise<Terminal> {
  const home = temporaryDirectory();
  mkdirSync(join(home, "context-directory"));
  mkdirSync(join(home, "two words"));
  writeFileSync(join(home, "two words/inside"), "");
  writeFileSync(join(home, "notes.txt"), "FROM base:1 AS alone\n");
  writeFileSync(
    join(home, "context-directory/Dockerfile"),
    "FROM base:1 AS base\nFROM base AS Compile\nRUN make\n",
  );
  const environment = { CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken" };
  return await openBoughTerminal({ home, environment, shell });
}
