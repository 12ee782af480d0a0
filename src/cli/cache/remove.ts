import { listIndexImages } from "../../builder/scopes/index-images.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { connect } from "../service/connection.ts";
import { noSuchScope, readScopeArgument, scopeArgument } from "./scope-argument.ts";

export const remove = command({
  name: "remove",
  description: "Remove a scope; the images of its layers stay.",
  args: { scope: scopeArgument },
  run: removeScope,
  examples: [
    ["cache remove feature/x", "the scope of a deleted branch"],
    ["cache remove main", "the next builds start without it"],
  ],
  agentNote:
    "This command is mutating, for all machines. It does not ask for confirmation. A build that is writing the scope may create it again.",
});

async function removeScope(invocation: Invocation): Promise<void> {
  const { values } = invocation;
  const name = readScopeArgument(values);
  await using connection = await connect(invocation);
  const { service } = connection;
  const images = await listIndexImages(name, service);
  if (images.length === 0) throw await noSuchScope(name, service);
  // The scope's own tag comes last, so that the next try can remove what an interruption leaves.
  for (const { image, tag } of images.toReversed()) await service.removeTag(image, tag);
  printResult(invocation, {
    id: name,
    json: { removed: name },
    table: () => ({ header: ["REMOVED"], rows: [[name]] }),
  });
}
