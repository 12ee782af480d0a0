/**
 * True if a service's message says that an image or a file of a request does not exist. Servers respond with 404 or 410. Some use
 * another refusal with such a message, or an operation that could not be run.
 */
export function meansMissing(message: string): boolean {
  return missing.test(message);
}

/** True if a message says that an image does not exist. A missing path `in image x` is something else. */
export function meansMissingImage(message: string): boolean {
  return missingImage.test(message);
}

const missingImage =
  /\b(no|no such|unknown|missing) image\b|\bimage\b[^.]{0,100}\b(not found|not exist|doesn't exist|unknown)\b/i;

const missing =
  /\b(no such|unknown|missing) (image|file)\b|\b(image|file)s?\b[^.]{0,100}\b(not found|not exist|doesn't exist|no longer|deleted|expired)\b/i;
