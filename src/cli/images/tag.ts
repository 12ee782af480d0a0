import { rememberTag } from "../../builder/cache/image-records.ts";
import { areEqualNames, parseTag, withLatest } from "../../service/images/reference.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import {
  imageDescription,
  imagesOfTag,
  isIdPrefix,
  resolveImageArgument,
  resolveRemovedImage,
  tagsOf,
} from "../references/image-argument.ts";
import { connect } from "../service/connection.ts";

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
  needs: "service",
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
  const written = withLatest(reference.replace(/^tag:/, ""));
  const source = (await tagsOf(image, connection)).find((each) => areEqualNames(each, written));
  const images = source === undefined ? [image] : await imagesOfTag(source, image, connection);
  for (const each of images) await service.tagImage(each, name);
  rememberTag(name, image, store);
  printResult(invocation, {
    id: image,
    json: { image, tag: name },
    table: () => ({ header: ["IMAGE", "TAG"], rows: [[{ whole: image }, { whole: name }]] }),
  });
}

export const untag = command({
  name: "untag",
  description: "Remove a tag; the image stays.",
  args: {
    image: {
      type: "positional",
      completes: "tag",
      required: true,
      description:
        "A tag or tag:NAME: only this tag is removed. A UUID or its first 8 digits: all tags of the image are removed",
    },
  },
  needs: "service",
  run: untagImage,
  examples: [
    ["untag app:dev", "this tag"],
    ["untag 0d0f6a54-6e0b-4b6e-9f0e-6f3a2b8f6f11", "all tags of an image"],
  ],
  agentNote:
    "This command is mutating. An image without a tag is named by its UUID; `bough engine prune` may remove it.",
});

async function untagImage(invocation: Invocation): Promise<void> {
  const { values } = invocation;
  const [reference = ""] = values.positionals;
  await using connection = await connect(invocation);
  const { service, store } = connection;
  const image = await resolveRemovedImage(connection, reference);
  const tags = await tagsOf(image, connection);
  const name = reference.replace(/^tag:/, "");
  const named = tags.find((tag) => tag === name) ?? withLatest(name);
  const isById = !tags.includes(named) && isIdPrefix(image, reference);
  const removed = isById ? tags : [named];
  if (isById) await service.untagImage(image);
  else for (const each of await imagesOfTag(named, image, connection)) await service.removeTag(each, named);
  store.imports.forgetImage(image);
  printResult(invocation, {
    id: image,
    json: { image, removed },
    table: () => ({
      header: ["IMAGE", "REMOVED"],
      rows: [[{ whole: image }, removed.length === 0 ? null : { whole: removed.join(" ") }]],
    }),
  });
}
