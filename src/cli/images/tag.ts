import { rememberTag } from "../../builder/bases/remembered-images.ts";
import { parseTag } from "../../service/images/tag.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { connect } from "../service/connection.ts";
import { imageDescription, resolveImageArgument } from "./image-argument.ts";

export const tag = command({
  name: "tag",
  description: "Give an image a tag. A tag names one image: it moves if another image has it.",
  args: {
    image: { type: "positional", completes: "image", required: true, description: imageDescription },
    name: {
      type: "positional",
      completes: "tag",
      required: true,
      description: "The new tag, NAME[:TAG]; `latest` if TAG is left out",
    },
  },
  run: tagImage,
  examples: [
    ["tag app:dev app:1.0", "another tag for the image of a tag"],
    ["tag 0d0f6a54-6e0b-4b6e-9f0e-6f3a2b8f6f11 app:fixed", "an image by its UUID"],
  ],
  agentNote: [
    "This command is mutating: everyone who uses the tag gets another image from now on.",
    "The engine keeps several tags of an image; some services keep one, the last.",
  ].join("\n"),
});

async function tagImage(invocation: Invocation): Promise<void> {
  const { values } = invocation;
  const [reference = "", given = ""] = values.positionals;
  const name = parseTag(given);
  await using connection = await connect(invocation);
  const { service, store } = connection;
  const image = await resolveImageArgument(connection, reference);
  await service.tagImage(image, name);
  rememberTag(name, image, { service, store });
  printResult(invocation, {
    id: image,
    json: { image, tag: name },
    table: () => ({ header: ["IMAGE", "TAG"], rows: [[{ whole: image }, { whole: name }]] }),
  });
}
