import os
print(os)
