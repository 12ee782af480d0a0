import { removeProfile } from "../../service/profiles/profile-editor.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { loadProfiles, requireProfile, storeProfiles } from "./profiles.ts";

export const remove = command({
  name: "remove",
  description: "Remove a profile with its token; other sections of the files stay.",
  args: {
    name: { type: "positional", completes: "profile", required: true, description: "A saved profile" },
  },
  run: removeNamed,
  examples: [
    ["auth remove work", "the profile `work`"],
    ["auth list", "the profiles that are left"],
  ],
  agentNote: "The token stays valid on the service: it is only removed from this machine.",
});

function removeNamed(invocation: Invocation): void {
  const { values, runtime, log } = invocation;
  const { texts, profiles, active } = loadProfiles(runtime);
  const { name } = requireProfile(profiles, values.positionals[0] ?? "");
  storeProfiles(runtime, texts, removeProfile(texts, name));
  if (name === active) {
    const next =
      profiles.byName.size > 1
        ? "`bough auth switch NAME` makes another one active"
        : "no other is left, so CONTREE_URL names the service, or else the embedded engine is used";
    log.warn(`the active profile was removed: ${next}`);
  }
  printResult(invocation, { id: name, json: { removed: name }, table: () => `${visible(name)}\n` });
}
