import { switchProfile } from "../../service/profiles/profile-editor.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { loadProfiles, requireProfile, storeProfiles } from "./profiles.ts";

export const switchCommand = command({
  name: "switch",
  description: "Make another profile the active one, for all of the service's clients.",
  args: {
    name: { type: "positional", completes: "profile", required: true, description: "A saved profile" },
  },
  run: switchTo,
  examples: [
    ["auth switch work", "use the profile `work` from now on"],
    ["-p work images", "use it for one command only; CONTREE_PROFILE does the same"],
  ],
  agentNote:
    "It changes a file that the service's other clients read. Prefer -p NAME, which changes nothing.",
});

function switchTo(invocation: Invocation): void {
  const { values, runtime } = invocation;
  const { texts, profiles } = loadProfiles(runtime);
  const { name, url } = requireProfile(profiles, values.positionals[0] ?? "");
  storeProfiles(runtime, texts, switchProfile(texts, name));
  printResult(invocation, {
    id: name,
    json: { profile: name, url: url ?? null },
    table: () => `${visible(name)}\n`,
  });
}
