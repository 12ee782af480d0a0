import type { CopyInstruction, FromInstruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import type { DirectoryContext } from "./named-context.ts";

/** Returns the COPY that puts all files of a context into the empty image: what a FROM of a directory means. */
export function copyOfDirectory(name: string, from: FromInstruction): CopyInstruction {
  const { range, original, title } = from;
  return {
    ...{ name: "COPY", range, original, title, flags: [], args: ". /", heredocs: [] },
    from: name,
    sources: [{ kind: "path", path: "." }],
    destination: "/",
    ...{ chown: undefined, chmod: undefined, exclude: [], parents: false, link: undefined },
  };
}

/** Calls `action`, which starts from the empty image. Its refusal then names the context that needs it. */
export async function explainDirectoryBase<Result>(
  { name }: Pick<DirectoryContext, "name">,
  action: () => Promise<Result>,
): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof BoughError) || error.kind !== "usage") throw error;
    throw new BoughError(
      `--build-context ${name} is a directory, which needs FROM scratch. ${error.message}`,
      {
        kind: "usage",
        hint: `Start from an image and copy the files: COPY --from=${name} / /.`,
        cause: error,
      },
    );
  }
}
