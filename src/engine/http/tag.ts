import { isTag } from "../../service/wire/image.ts";
import { RequestError } from "./answers.ts";

/** Throws unless the text can be an image's tag. */
export function requireTag(tag: string): void {
  if (isTag(tag)) return;
  throw new RequestError(
    400,
    `${JSON.stringify(tag)} is not a valid tag: expected [HOST[:PORT]/]NAME[:TAG], with capital letters only after the colon`,
  );
}
